//! Redirects, followed by hand: every hop is looked at before it is asked.

use http::StatusCode;
use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use reqwest::{Client, Request, Response};
use sieva_types::{Error, ErrorKind};
use url::Url;

use super::address;
use super::failure::Failure;
use super::transport::Transport;
use crate::guard::Purpose;

/// Redirects that one request may be sent through.
const MOST: usize = 10;

/// Sends a request, and where the server says that the object is elsewhere, sends it there: if the gate lets it, never from
/// an encrypted place to a plain one, and without what proves who asks where it is another server.
pub(crate) async fn follow(
    transport: &Transport,
    client: &Client,
    mut request: Request,
    what: &str,
) -> Result<Response, Failure> {
    let refused = |why: &str| Failure::Final(Error::new(ErrorKind::Io, format!("{what}: {why}")));
    for _ in 0..=MOST {
        if transport.options.public_only {
            address::check_literal(request.url(), what)?;
        }
        let again = request.try_clone().filter(|_| transport.service.follows_redirects());
        let answer = client.execute(request).await.map_err(|e| Failure::connection(e, what))?;
        let (Some(mut next), Some(target)) = (again, target(&answer)) else { return Ok(answer) };
        let target = target.ok_or_else(|| refused("the server sends it to an address that is none"))?;
        if next.url().scheme() == "https" && target.scheme() != "https" {
            return Err(refused("a redirect from https to http is refused"));
        }
        transport.gate.check_parsed(&target, Purpose::Redirect).map_err(|e| e.at(what))?;
        if next.url().origin() != target.origin() {
            [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION]
                .iter()
                .for_each(|name| drop(next.headers_mut().remove(name)));
        }
        *next.url_mut() = target;
        request = next;
    }
    Err(refused("too many redirects"))
}

/// Where an answer sends the request to: outside `None` where it sends it nowhere, inside where it is no address.
fn target(answer: &Response) -> Option<Option<Url>> {
    use StatusCode as S;
    let sends = [S::MOVED_PERMANENTLY, S::FOUND, S::SEE_OTHER, S::TEMPORARY_REDIRECT, S::PERMANENT_REDIRECT];
    let location = answer.headers().get(LOCATION).filter(|_| sends.contains(&answer.status()))?;
    let target = location.to_str().ok().and_then(|text| answer.url().join(text).ok());
    Some(target.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).map(|mut url| {
        // A server that knows a password of another is not asked to use ours there, nor to hand out its own.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_fragment(None);
        url
    }))
}
