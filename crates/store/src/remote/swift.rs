//! OpenStack Swift by its own protocol: version 1 tokens, listings in JSON.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use http::header::ETAG;
use reqwest::{Client, Method, Request};
use serde::Deserialize;
use sieva_types::{Error, ErrorKind, Result};
use tokio::sync::Mutex;
use url::Url;

use super::failure::{Failure, refused};
use super::retry;
use super::sent::hex;
use super::service::{
    Asking, Call, Large, Listing, Page, Pending, Service, Writing, address, variable, within,
};
use super::temp_url;
use crate::Entry;
use crate::location::container_and_key;
use crate::stores::Store;

pub(crate) const TOKEN: &str = "x-auth-token";
const HINT: &str = "set ST_AUTH, ST_USER and ST_KEY, or OS_STORAGE_URL and OS_AUTH_TOKEN";

/// The store of `swift://`.
pub(crate) const STORE: Store = Store {
    schemes: &["swift"],
    form: "swift://container/object",
    variables: &["ST_AUTH", "ST_USER", "ST_KEY", "OS_STORAGE_URL", "OS_AUTH_TOKEN"],
    locate: |location, rest| {
        container_and_key("swift", location, rest, |place| Ok(Box::new(Swift::from_env(&place.container)?)))
    },
};

/// Longer bodies than these would have to be put in segments, which replacing them leaves behind.
const LONGEST: u64 = 5 << 30;

const WRITING: Writing = Writing {
    sum: |md5| (ETAG, hex(md5)),
    signs: false,
    makes_container: true,
    small: 16 << 20,
    large: Large::Whole(LONGEST),
};

/// A container.
#[derive(Debug)]
pub(crate) struct Swift {
    container: String,
    login: Option<Login>,
    session: Arc<Sessions>,
    account: String,
}

/// Who asks, and whom to ask for a token.
struct Login {
    auth: Url,
    user: HeaderValue,
    key: HeaderValue,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Session {
    storage: Url,
    token: HeaderValue,
}

/// The present token of an account.
type Sessions = Mutex<Option<Session>>;

/// One token serves all containers and objects that the process opens as one user.
fn shared_session(user: &str) -> Arc<Sessions> {
    static USERS: std::sync::Mutex<BTreeMap<Vec<u8>, Arc<Sessions>>> = std::sync::Mutex::new(BTreeMap::new());
    let digest = ring::digest::digest(&ring::digest::SHA256, user.as_bytes());
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(users.entry(digest.as_ref().to_vec()).or_default())
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Swift {
    /// A container of a server on loopback.
    #[cfg(test)]
    pub(crate) fn at(endpoint: &str, container: &str) -> Self {
        let auth = Url::parse(&format!("{endpoint}/auth/v1.0")).unwrap();
        let (user, key) = (HeaderValue::from_static("me"), HeaderValue::from_static("s3cret"));
        let (account, session) = (auth.to_string(), Arc::default());
        Self { container: container.to_owned(), login: Some(Login { auth, user, key }), session, account }
    }

    /// The container as the environment's variables describe the account.
    fn from_env(container: &str) -> Result<Self> {
        let container = container.to_owned();
        if let (Some(storage), Some(token)) = (variable("OS_STORAGE_URL"), variable("OS_AUTH_TOKEN")) {
            let session = Session {
                storage: url("OS_STORAGE_URL", &storage)?,
                token: secret("OS_AUTH_TOKEN", &token)?,
            };
            let account = session.storage.to_string();
            return Ok(Self {
                container,
                login: None,
                session: Arc::new(Mutex::new(Some(session))),
                account,
            });
        }
        let (Some(auth), Some(user), Some(key)) =
            (variable("ST_AUTH"), variable("ST_USER"), variable("ST_KEY"))
        else {
            let message = format!("swift://{container} needs an account");
            return Err(Error::new(ErrorKind::PermissionDenied, message).hint(HINT));
        };
        let login = Login {
            auth: url("ST_AUTH", &auth)?,
            user: secret("ST_USER", &user)?,
            key: secret("ST_KEY", &key)?,
        };
        let account = format!("{} {user}", login.auth);
        let session = shared_session(&format!("{account} {key}"));
        Ok(Self { container, login: Some(login), session, account })
    }

    /// The present token, or a new one. The lock is held meanwhile, so that many requests ask for one token once.
    async fn session(&self, client: &Client) -> std::result::Result<Session, Failure> {
        let mut session = self.session.lock().await;
        if let Some(known) = &*session {
            return Ok(known.clone());
        }
        let Some(login) = &self.login else {
            return Err(Error::new(ErrorKind::PermissionDenied, "no token for Swift").hint(HINT).into());
        };
        let new = login.sign_in(client).await?;
        *session = Some(new.clone());
        Ok(new)
    }
}

impl Service for Swift {
    fn request<'a>(
        &'a self,
        client: &'a Client,
        call: Call<'a>,
    ) -> Pending<'a, std::result::Result<Request, Failure>> {
        Box::pin(async move {
            let session = self.session(client).await?;
            let container = address(&session.storage, &self.container, &[])?;
            let mut request = Request::new(call.method, address(&container, call.key, call.query)?);
            request.headers_mut().extend(call.headers);
            request.headers_mut().insert(TOKEN, session.token);
            Ok(request)
        })
    }

    /// Forgets the token if it is the one that was refused: another request may have renewed it meanwhile.
    fn renew<'a>(&'a self, refused: Option<&'a HeaderValue>) -> Pending<'a, bool> {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            if self.login.is_some() && session.as_ref().map(|s| &s.token) == refused {
                *session = None;
            }
            self.login.is_some()
        })
    }

    fn root(&self) -> String {
        format!("swift://{}", self.container)
    }

    fn identity(&self, key: &str) -> String {
        format!("{} {key}", self.authority())
    }

    /// Account and container.
    fn authority(&self) -> String {
        format!("{} {}", self.account, self.container)
    }

    fn access(&self) -> &'static str {
        HINT
    }

    fn place(&self, key: &str) -> Result<Url> {
        within("swift", &self.container, key)
    }

    fn listing(&self) -> Option<&'static Listing> {
        Some(&Listing { asks: ("format", "json"), next: "marker", page: page_and_marker })
    }

    fn writing(&self) -> Option<&'static Writing> {
        Some(&WRITING)
    }

    fn link<'a>(
        &'a self,
        asking: &'a Asking<'a>,
        key: &'a str,
        expires: Duration,
    ) -> Pending<'a, Result<Url>> {
        Box::pin(async move {
            let secret = temp_url::secret(asking).await?;
            // Asking for that needed a session.
            let session = self.session.lock().await.clone();
            let session = session.ok_or_else(|| Error::new(ErrorKind::Internal, "no session of Swift"))?;
            let container = address(&session.storage, &self.container, &[])?;
            let digest = temp_url::digest(asking, &session.storage).await?;
            temp_url::signed(&secret, digest, &container, key, expires)
        })
    }
}

/// Swift gives pages until an empty one; the last name marks where to go on.
fn page_and_marker(body: &[u8]) -> Page {
    let page = page(body)?;
    let next = page.last().map(|entry| entry.key.clone());
    Ok((page, next))
}

impl Login {
    async fn sign_in(&self, client: &Client) -> std::result::Result<Session, Failure> {
        let name = "the Swift account at ST_AUTH";
        let mut request = Request::new(Method::GET, self.auth.clone());
        request.headers_mut().insert("x-auth-user", self.user.clone());
        request.headers_mut().insert("x-auth-key", self.key.clone());
        let answer = client.execute(request).await.map_err(|e| Failure::connection(e, name))?;
        let status = answer.status();
        if retry::may_pass(status) {
            return Err(Failure::Again { cause: format!("{name} answers {status}"), after: None });
        }
        if !status.is_success() {
            return Err(refused(status, None, name, "check ST_USER and ST_KEY").into());
        }
        let header = |name: &str| answer.headers().get(name);
        let storage = header("x-storage-url").and_then(|v| Url::parse(v.to_str().ok()?).ok());
        match (storage, header(TOKEN)) {
            (Some(storage), Some(token)) => {
                let mut token = token.clone();
                token.set_sensitive(true);
                Ok(Session { storage, token })
            }
            _ => Err(Error::new(ErrorKind::Io, format!("{name} gives no token"))
                .hint("ST_AUTH is the address of version 1 tokens, such as http://host:8080/auth/v1.0")
                .into()),
        }
    }
}

fn url(name: &str, value: &str) -> Result<Url> {
    let url = Url::parse(value).ok().filter(|u| matches!(u.scheme(), "http" | "https") && u.host().is_some());
    url.ok_or_else(|| Error::new(ErrorKind::InvalidValue, format!("{name} is no valid http(s) address")))
}

fn secret(name: &str, value: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::new(ErrorKind::InvalidValue, format!("{name} has characters that no header can carry"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
    #[serde(default)]
    hash: String,
}

/// One page of a listing; the last name is the marker of the next.
fn page(body: &[u8]) -> std::result::Result<Vec<Entry>, String> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let listed: Vec<Listed> = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    Ok(listed.into_iter().map(|l| Entry { key: l.name, size: l.bytes, version: l.hash }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_listing_is_read() {
        let json = br#"[{"name": "a/b", "bytes": 3, "hash": "h", "content_type": "x"}]"#;
        assert_eq!(page(json).unwrap(), [Entry { key: "a/b".into(), size: 3, version: "h".into() }]);
        assert_eq!(page(b"").unwrap(), []);
        assert!(page(b"{}").is_err());
    }
}
