//! Who may do what: roles and tokens.

mod rate;
mod token;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use serde::{Deserialize, Serialize};

pub(crate) use rate::Rate;
pub use token::{Error, NewToken, Token, Tokens};

use crate::problem::Problem;

/// What a caller may do. Each role includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look at models; score and certify rows that the caller sends.
    Read,
    /// Look at applicants and ask about them; ask for advice, calibrate, audit; read the ledger and
    /// record in it.
    Explain,
    /// Upload, activate and remove models; close and forget promises.
    Admin,
}

impl Role {
    /// All of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Explain, Self::Admin];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Explain => "explain",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

tyrex::choices! { Role "role" {
    Read = "read": "Look at models; score and certify rows",
    Explain = "explain":
        "Also look at applicants, ask for advice, calibrate, audit, read and write the ledger",
    Admin = "admin": "Also upload, activate and remove models; close and forget promises",
} }

/// Who asks. Middleware puts it into every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anyone, on a service that demands no tokens: an admin.
    Anyone,
    /// Whoever holds this token.
    Holder {
        /// The public part of the token.
        id: String,
        /// What it allows.
        role: Role,
    },
    /// Nobody who is known, and why.
    Unknown(&'static str),
}

/// The public part of a token, for the log.
#[derive(Debug, Clone)]
pub(crate) struct TokenName(pub(crate) String);

impl Caller {
    /// Who sent a request. Without the middleware nobody is let in.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        extensions.get().unwrap_or(&Self::Unknown("no access"))
    }

    /// Refuses callers below a role.
    pub(crate) fn demand(&self, needed: Role) -> Result<(), Problem> {
        match self {
            Self::Anyone => Ok(()),
            Self::Holder { role, .. } if *role >= needed => Ok(()),
            Self::Holder { role, .. } => {
                let (role, needed) = (role.name(), needed.name());
                let detail = format!("the token's role is `{role}`, this needs `{needed}`");
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
            Self::Unknown(why) => Err(Problem::new(StatusCode::UNAUTHORIZED, *why)),
        }
    }
}

/// An extractor that lets a handler run only for callers of a role.
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
    /// A caller who may at least look.
    Reader: Role::Read;
    /// A caller who may at least ask for advice.
    Explaining: Role::Explain;
    /// A caller who may do everything.
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
