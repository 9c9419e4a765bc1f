//! Who asks, where a server answers for others.

use std::fmt;

/// The identity that a server has checked; the engine believes it.
///
/// Uses that are noted in a catalog bear it. It is where grants are to be looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The account that the server acts as for the client; empty where there is none.
    pub user: String,
    /// What the client proved to be, such as the distinguished name of a certificate; empty where it proved nothing.
    pub subject: String,
}

impl fmt::Display for Identity {
    /// The subject, else the account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.subject.is_empty() { &self.user } else { &self.subject })
    }
}
