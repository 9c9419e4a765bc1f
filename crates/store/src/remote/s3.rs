//! Amazon's S3 and those that speak like it: addresses, credentials, listings.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderName;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsAuthorizer, AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::signer::Signer;
use reqwest::{Client, Method, Request};
use serde::Deserialize;
use sieva_types::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

use super::failure::Failure;
use super::service::{
    Asking, Call, Large, Listing, Page, Parts, Pending, Service, Writing, address, variable, within,
};
use crate::Entry;
use crate::location::container_and_key;
use crate::stores::Store;

/// The store of `s3://`.
pub(crate) const STORE: Store = Store {
    schemes: &["s3"],
    form: "s3://bucket/key",
    variables: &["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    locate: |location, rest| {
        container_and_key("s3", location, rest, |place| Ok(Box::new(S3::from_env(&place.container)?)))
    },
};

const MIB: u64 = 1 << 20;
/// How long a signed address can be good for.
const LONGEST_LINK: Duration = Duration::from_secs(7 * 86_400);

const WRITING: Writing = Writing {
    sum: |md5| (HeaderName::from_static("content-md5"), BASE64_STANDARD.encode(md5)),
    signs: true,
    makes_container: false,
    small: 64 * MIB,
    large: Large::Parts(Parts { size: 16 * MIB, most: 10_000, total: 5 << 40, memory: 64 * MIB }),
};

/// A bucket.
#[derive(Debug)]
pub(crate) struct S3 {
    bucket: String,
    base: Url,
    region: String,
    /// None: requests go unsigned.
    credentials: Option<AwsCredentialProvider>,
}

/// Credentials that do not change.
#[derive(Debug)]
struct Fixed(Arc<AwsCredential>);

impl S3 {
    /// A bucket of a server on loopback, with keys.
    #[cfg(test)]
    pub(crate) fn at(endpoint: &str, bucket: &str) -> Self {
        let (key_id, secret_key) = ("AKIDEXAMPLE".to_owned(), "s3cret".to_owned());
        let credential = AwsCredential { key_id, secret_key, token: None };
        Self {
            bucket: bucket.to_owned(),
            base: Url::parse(&format!("{endpoint}/{bucket}")).unwrap(),
            region: "us-east-1".to_owned(),
            credentials: Some(Arc::new(Fixed(Arc::new(credential)))),
        }
    }

    /// An address with a signature of ours in it. No server is asked.
    async fn signed(&self, key: &str, expires: Duration) -> Result<Url> {
        let name = self.name(key);
        let Some(credentials) = &self.credentials else {
            let message = format!("a link to '{name}' is signed, and there are no keys to sign it with");
            return Err(Error::new(ErrorKind::PermissionDenied, message).hint(self.access()));
        };
        if expires > LONGEST_LINK {
            let message = format!("a link to '{name}' for {} s", expires.as_secs());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("S3 allows 7 days at most"));
        }
        let failed = |e: object_store::Error| {
            Error::new(ErrorKind::PermissionDenied, format!("cannot sign a link to '{name}': {e}"))
        };
        let path = object_store::path::Path::parse(key)
            .map_err(|e| Error::new(ErrorKind::InvalidValue, format!("'{name}' is no key: {e}")))?;
        // An endpoint for hosts of buckets is taken as it is: ours has the bucket in it, wherever that belongs.
        let store = AmazonS3Builder::new()
            .with_endpoint(self.base.as_str().trim_end_matches('/'))
            .with_virtual_hosted_style_request(true)
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            .with_credentials(Arc::clone(credentials))
            .with_allow_http(true)
            .build()
            .map_err(failed)?;
        store.signed_url(Method::GET, &path, expires).await.map_err(failed)
    }

    /// The bucket as the environment's AWS variables describe it.
    fn from_env(bucket: &str) -> Result<Self> {
        let region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| variable(name));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .iter()
            .find_map(|name| variable(name));
        let hosted =
            variable("AWS_VIRTUAL_HOSTED_STYLE_REQUEST").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let base = base(bucket, &region, endpoint.as_deref(), hosted)?;
        Ok(Self { bucket: bucket.to_owned(), base, region, credentials: credentials(bucket)? })
    }
}

impl Service for S3 {
    fn request<'a>(
        &'a self,
        _client: &'a Client,
        call: Call<'a>,
    ) -> Pending<'a, std::result::Result<Request, Failure>> {
        Box::pin(async move {
            let url = address(&self.base, call.key, call.query)?;
            let mut request = Request::new(call.method, url);
            request.headers_mut().extend(call.headers);
            if let Some(credentials) = &self.credentials {
                let again = |e: object_store::Error| Failure::Again {
                    cause: format!("no credentials: {e}"),
                    after: None,
                };
                let credential = credentials.get_credential().await.map_err(again)?;
                sign(&mut request, &credential, &self.region, call.digest)?;
            }
            Ok(request)
        })
    }

    fn root(&self) -> String {
        format!("s3://{}", self.bucket)
    }

    fn identity(&self, key: &str) -> String {
        format!("{} {key}", self.base)
    }

    fn authority(&self) -> String {
        self.base.authority().to_owned()
    }

    fn access(&self) -> &'static str {
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); without them requests are anonymous"
    }

    fn place(&self, key: &str) -> Result<Url> {
        within("s3", &self.bucket, key)
    }

    fn listing(&self) -> Option<&'static Listing> {
        Some(&Listing { asks: ("list-type", "2"), next: "continuation-token", page })
    }

    fn writing(&self) -> Option<&'static Writing> {
        Some(&WRITING)
    }

    fn link<'a>(&'a self, _: &'a Asking<'a>, key: &'a str, expires: Duration) -> Pending<'a, Result<Url>> {
        Box::pin(async move { self.signed(key, expires).await })
    }
}

/// The address of a bucket. Names with dots do not match Amazon's certificates as hosts: they go into the path, as
/// they do with other servers.
fn base(bucket: &str, region: &str, endpoint: Option<&str>, hosted: bool) -> Result<Url> {
    let text = match endpoint.map(|e| e.trim_end_matches('/')) {
        None if bucket.contains('.') => format!("https://s3.{region}.amazonaws.com/{bucket}"),
        None => format!("https://{bucket}.s3.{region}.amazonaws.com"),
        Some(endpoint) => match endpoint.split_once("://") {
            Some((scheme, host)) if hosted => format!("{scheme}://{bucket}.{host}"),
            _ => format!("{endpoint}/{bucket}"),
        },
    };
    let valid =
        Url::parse(&text).ok().filter(|u| matches!(u.scheme(), "http" | "https") && u.host().is_some());
    valid.ok_or_else(|| {
        Error::new(ErrorKind::InvalidValue, "AWS_ENDPOINT_URL is no valid address")
            .hint("set it to http://host:port or https://host, or unset it for Amazon's own")
    })
}

fn credentials(bucket: &str) -> Result<Option<AwsCredentialProvider>> {
    let skip = variable("AWS_SKIP_SIGNATURE").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let (key_id, secret_key) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"));
    if skip {
        return Ok(None);
    }
    if let (Some(key_id), Some(secret_key)) = (key_id, secret_key) {
        let token = variable("AWS_SESSION_TOKEN");
        let sendable = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if !sendable(&key_id) || !token.as_deref().is_none_or(sendable) {
            let message = "AWS_ACCESS_KEY_ID or AWS_SESSION_TOKEN has characters that no header can carry";
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        return Ok(Some(Arc::new(Fixed(Arc::new(AwsCredential { key_id, secret_key, token })))));
    }
    let lent = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    if !lent.iter().any(|name| variable(name).is_some()) {
        return Ok(None);
    }
    let store = AmazonS3Builder::from_env().with_bucket_name(bucket).with_allow_http(true).build();
    let store = store.map_err(|e| {
        Error::new(ErrorKind::PermissionDenied, format!("cannot use the credentials of the environment: {e}"))
    })?;
    Ok(Some(Arc::clone(store.credentials())))
}

impl CredentialProvider for Fixed {
    type Credential = AwsCredential;

    fn get_credential<'a, 'b>(
        &'a self,
    ) -> std::pin::Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Signature version 4 in the request's headers, of a body with this digest.
fn sign(
    request: &mut Request,
    credential: &AwsCredential,
    region: &str,
    digest: Option<[u8; 32]>,
) -> Result<()> {
    let internal =
        |e: &dyn std::fmt::Display| Error::new(ErrorKind::Internal, format!("cannot sign a request: {e}"));
    let unsigned = http::Request::builder().method(request.method()).uri(request.url().as_str());
    let mut unsigned: HttpRequest = unsigned.body(HttpRequestBody::empty()).map_err(|e| internal(&e))?;
    unsigned.headers_mut().extend(std::mem::take(request.headers_mut()));
    let authorizer = AwsAuthorizer::new(credential, "s3", region);
    authorizer
        .try_authorize(&mut unsigned, digest.as_ref().map(<[u8; 32]>::as_slice))
        .map_err(|e| internal(&e))?;
    request.headers_mut().extend(unsigned.into_parts().0.headers);
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListBucketResult {
    #[serde(default)]
    contents: Vec<Contents>,
    next_continuation_token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Contents {
    #[serde(rename = "Key")]
    key: String,
    #[serde(rename = "Size")]
    size: u64,
    #[serde(rename = "ETag", default)]
    etag: String,
}

/// One page of a listing (ListObjectsV2), and the token of the next.
fn page(body: &[u8]) -> Page {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    let result: ListBucketResult = quick_xml::de::from_str(text).map_err(|e| e.to_string())?;
    let entry = |c: Contents| Entry { key: c.key, size: c.size, version: c.etag };
    Ok((result.contents.into_iter().map(entry).collect(), result.next_continuation_token))
}

/// The code of an S3 error, which says more than the status: `NoSuchBucket`, `RequestTimeTooSkewed`.
pub(crate) fn error_code(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let code = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    (code.len() < 80 && code.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_addresses() {
        let base = |b, e, hosted| base(b, "eu-west-1", e, hosted).unwrap().to_string();
        assert_eq!(base("data", None, false), "https://data.s3.eu-west-1.amazonaws.com/");
        assert_eq!(base("a.b", None, false), "https://s3.eu-west-1.amazonaws.com/a.b");
        assert_eq!(base("data", Some("http://127.0.0.1:9000/"), false), "http://127.0.0.1:9000/data");
        assert_eq!(base("data", Some("http://h:9"), true), "http://data.h:9/");
        assert_eq!(
            super::base("b", "r", Some("nonsense"), false).unwrap_err().kind(),
            ErrorKind::InvalidValue
        );
    }

    #[test]
    fn a_page_of_a_listing_is_read() {
        let xml = br#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>
            <Contents><Key>a &lt;b</Key><Size>7</Size><ETag>&quot;e&quot;</ETag></Contents>
            <Contents><Key>c</Key><Size>0</Size></Contents></ListBucketResult>"#;
        let (entries, next) = page(xml).unwrap();
        assert_eq!(next.as_deref(), Some("t&1"));
        assert_eq!(entries[0], Entry { key: "a <b".into(), size: 7, version: "\"e\"".into() });
        assert_eq!((entries.len(), entries[1].key.as_str()), (2, "c"));
        assert!(page(b"<html>").is_err());
    }

    #[test]
    fn codes_of_errors_are_words() {
        assert_eq!(error_code(b"<Error><Code>NoSuchKey</Code></Error>"), Some("NoSuchKey"));
        assert_eq!(error_code(b"<Code>a b</Code>"), None);
    }
}
