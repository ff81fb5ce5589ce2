//! Catalogues: enums of kinds, each with a file of its own and one line in a list. Everything that
//! depends on all kinds is generated from the list.

/// The name of a kind, as typed by users and written in files: the name of its variant in kebab
/// case, as `serde` writes it. The catalogue implements it.
pub(crate) trait Named {
    /// The name. It is never reused for another kind.
    const NAME: &'static str;
}

/// The kebab case of a variant's name: `TrexNn` is `trex-nn`.
macro_rules! kebab {
    ($variant:ident) => {{
        const NAME: &[u8] = stringify!($variant).as_bytes();
        const LENGTH: usize = $crate::catalogue::kebab_length(NAME);
        const LETTERS: [u8; LENGTH] = $crate::catalogue::kebab_letters(NAME);
        match std::str::from_utf8(&LETTERS) {
            Ok(name) => name,
            Err(_) => stringify!($variant),
        }
    }};
}
pub(crate) use kebab;

/// The length of a name in kebab case: every capital letter but the first gets a hyphen.
pub(crate) const fn kebab_length(name: &[u8]) -> usize {
    let (mut length, mut at) = (name.len(), 1);
    while at < name.len() {
        length += name[at].is_ascii_uppercase() as usize;
        at += 1;
    }
    length
}

/// A name in kebab case.
pub(crate) const fn kebab_letters<const LENGTH: usize>(name: &[u8]) -> [u8; LENGTH] {
    let (mut letters, mut at, mut length) = ([b'-'; LENGTH], 0, 0);
    while at < name.len() {
        length += (at > 0 && name[at].is_ascii_uppercase()) as usize;
        letters[length] = name[at].to_ascii_lowercase();
        (at, length) = (at + 1, length + 1);
    }
    letters
}

/// An enum of the kinds of a trait: one variant for each, which holds its parameters.
///
/// ```text
/// catalogue! {
///     /// A way to do it.
///     Way tagged "name" by Behaviour {
///         file::Kind,
///     }
/// }
/// ```
///
/// As a document it is one object: the name under the tag, and the parameters beside it. A kind
/// implements the trait, `Default`, `serde` and, for the OpenAPI description, `ToSchema`.
///
/// Kinds without default parameters have lines `Variant(file::Kind)`, and `by Behaviour with Entry`
/// makes a table `KINDS` of `Entry::of::<Kind>()` for them.
macro_rules! catalogue {
    (
        $(#[$about:meta])*
        $all:ident tagged $tag:literal by $behaviour:ident { $($file:ident::$kind:ident,)+ }
    ) => {
        $crate::catalogue::catalogue! {
            @core $(#[$about])*
            $all tagged $tag by $behaviour { $($kind($file::$kind),)+ }
        }

        impl $all {
            /// One of each, with its default parameters.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$kind($kind::default()),)+]
            }
        }
    };
    (
        $(#[$about:meta])*
        $all:ident tagged $tag:literal by $behaviour:ident with $entry:ident {
            $($variant:ident($file:ident::$kind:ident),)+
        }
    ) => {
        $crate::catalogue::catalogue! {
            @core $(#[$about])*
            $all tagged $tag by $behaviour { $($variant($file::$kind),)+ }
        }

        impl $all {
            /// The entry of each kind.
            pub const KINDS: [$entry; Self::NAMES.len()] = [$($entry::of::<$kind>()),+];
        }
    };
    (
        @core $(#[$about:meta])*
        $all:ident tagged $tag:literal by $behaviour:ident {
            $($variant:ident($file:ident::$kind:ident),)+
        }
    ) => {
        $(pub use $file::$kind;)+

        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = $tag, rename_all = "kebab-case")]
        pub enum $all {
            $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant($kind),)+
        }

        $(
            impl $crate::catalogue::Named for $kind {
                const NAME: &'static str = $crate::catalogue::kebab!($variant);
            }

            impl From<$kind> for $all {
                fn from(kind: $kind) -> Self {
                    Self::$variant(kind)
                }
            }
        )+

        impl $all {
            /// The names of all kinds, in the recommended order.
            pub const NAMES: [&'static str; [$(stringify!($kind)),+].len()] =
                [$(<$kind as $crate::catalogue::Named>::NAME),+];

            /// The name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$kind as $crate::catalogue::Named>::NAME,)+
                }
            }

            fn kind(&self) -> &dyn $behaviour {
                match self {
                    $(Self::$variant(kind) => kind,)+
                }
            }

            #[allow(dead_code, reason = "only methods have parameters to change in place")]
            fn kind_mut(&mut self) -> &mut dyn $behaviour {
                match self {
                    $(Self::$variant(kind) => kind,)+
                }
            }
        }

        #[cfg(feature = "openapi")]
        const _: () = {
            use utoipa::openapi::{RefOr, Schema};
            use utoipa::{PartialSchema, ToSchema};

            impl PartialSchema for $all {
                fn schema() -> RefOr<Schema> {
                    let kinds = $all::NAMES.into_iter().zip([$($kind::schema(),)+]);
                    $crate::openapi::tagged($tag, kinds)
                }
            }

            impl ToSchema for $all {
                fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                    $($kind::schemas(schemas);)+
                }
            }
        };
    };
}
pub(crate) use catalogue;

/// An enum of the kinds of a trait that have no parameters: one variant for each, written as its
/// name. Its kinds are unit structs that implement the trait.
macro_rules! plain_catalogue {
    (
        $(#[$about:meta])*
        $all:ident by $behaviour:ident { $($(#[$what:meta])+ $file:ident::$kind:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum $all {
            $($(#[$what])+ $kind,)+
        }

        impl $all {
            /// One of each.
            pub const ALL: [Self; [$(stringify!($kind)),+].len()] = [$(Self::$kind),+];

            /// The name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $crate::catalogue::kebab!($kind),)+
                }
            }

            fn kind(self) -> &'static dyn $behaviour {
                match self {
                    $(Self::$kind => &$file::$kind,)+
                }
            }
        }
    };
}
pub(crate) use plain_catalogue;

/// The names as a list in a sentence: "a, b or c".
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    match names.pop() {
        None => "none".to_owned(),
        Some(last) if names.is_empty() => last.to_owned(),
        Some(last) => format!("{} or {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn names_are_in_kebab_case() {
        assert_eq!([kebab!(Nn), kebab!(TrexNn), kebab!(L2)], ["nn", "trex-nn", "l2"]);
    }

    #[test]
    fn names_are_listed_as_people_do() {
        assert_eq!(listed([]), "none");
        assert_eq!(listed(["a"]), "a");
        assert_eq!(listed(["a", "b"]), "a or b");
        assert_eq!(listed(["a", "b", "c"]), "a, b or c");
    }
}
