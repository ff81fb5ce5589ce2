//! Access control: roles and tokens.

mod rate;
mod token;

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use serde::{Deserialize, Serialize};

pub(crate) use rate::Rate;
pub use token::{Error, NewToken, Token, Tokens};

use crate::problem::Problem;

/// The permissions of a caller. Each role includes the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// List models; score and certify rows that the caller sends.
    Read,
    /// See stored applicants and ask about them; request advice, calibrate, audit; read the ledger
    /// and record promises.
    Explain,
    /// Upload, activate and remove models; close and forget promises.
    Admin,
}

impl Role {
    /// All of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Explain, Self::Admin];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Explain => "explain",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

tyrex::choices! { Role "role" {
    Read = "read": "List models; score and certify rows",
    Explain = "explain":
        "Also see applicants, request advice, calibrate, audit, read and write the ledger",
    Admin = "admin": "Also upload, activate and remove models; close and forget promises",
} }

/// The caller of a request. Middleware adds it to every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Any caller of a service that requires no tokens: an admin.
    Anyone,
    /// The holder of this token.
    Holder {
        /// The public part of the token.
        id: String,
        /// Its role.
        role: Role,
    },
    /// An unknown caller, with the reason.
    Unknown(&'static str),
}

/// The public part of a token, for the log.
#[derive(Debug, Clone)]
pub(crate) struct TokenName(pub(crate) String);

impl Caller {
    /// The caller of a request. Without the middleware every caller is unknown.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        extensions.get().unwrap_or(&Self::Unknown("no access"))
    }

    /// Rejects callers below a role.
    pub(crate) fn demand(&self, needed: Role) -> Result<(), Problem> {
        match self {
            Self::Anyone => Ok(()),
            Self::Holder { role, .. } if *role >= needed => Ok(()),
            Self::Holder { role, .. } => {
                let (role, needed) = (role.name(), needed.name());
                let detail = format!("the token has the role `{role}`, expected `{needed}`");
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
            Self::Unknown(why) => Err(Problem::new(StatusCode::UNAUTHORIZED, *why)),
        }
    }

    /// The owner of the jobs that the caller starts: the public part of its token.
    pub(crate) fn owner(&self) -> Option<String> {
        match self {
            Self::Holder { id, .. } => Some(id.clone()),
            Self::Anyone | Self::Unknown(_) => None,
        }
    }

    /// Whether the caller may see and cancel a job of this owner: its own; an admin, all of them.
    pub(crate) fn may_see(&self, owner: Option<&str>) -> bool {
        match self {
            Self::Anyone | Self::Holder { role: Role::Admin, .. } => true,
            Self::Holder { id, .. } => owner == Some(id),
            Self::Unknown(_) => false,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions).clone())
    }
}

/// An extractor that rejects callers below a role.
macro_rules! demanding {
    ($(#[doc = $doc:literal] $name:ident: $role:expr;)*) => {$(
        #[doc = $doc]
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name;

        impl<S: Sync> FromRequestParts<S> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
                Caller::of(&parts.extensions).demand($role).map(|()| Self)
            }
        }
    )*};
}

demanding! {
    /// A caller with the role `read` or higher.
    Reader: Role::Read;
    /// A caller with the role `explain` or higher.
    Explaining: Role::Explain;
    /// A caller with the role `admin`.
    Admin: Role::Admin;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_one_before() {
        for (index, held) in Role::ALL.into_iter().enumerate() {
            assert_eq!(Role::named(held.name()), Some(held));
            let caller = Caller::Holder { id: "t".to_owned(), role: held };
            for (other, needed) in Role::ALL.into_iter().enumerate() {
                let answer = caller.demand(needed);
                assert_eq!(answer.is_ok(), other <= index, "{held:?} asks for {needed:?}");
                if let Err(problem) = answer {
                    assert_eq!(problem.status(), StatusCode::FORBIDDEN);
                }
            }
        }
        let unknown = Caller::Unknown("no token").demand(Role::Read).unwrap_err();
        assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);
    }
}
