//! Addresses that are no public ones, and a resolver of names that does not give them.
//!
//! What a name leads to is looked at where the connection is made, not before: it could lead elsewhere by then.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sieva_types::{Error, ErrorKind, Result};
use url::{Host, Url};

/// A host whose address is no public one.
#[derive(Debug)]
pub(crate) struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "its host is no public one: private, loopback and link-local addresses are not connected to",
        )
    }
}

impl std::error::Error for NotPublic {}

/// Resolves names to their public addresses.
#[derive(Debug)]
pub(crate) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> = found.into_iter().filter(|a| is_public(a.ip())).collect();
            if public.is_empty() {
                return Err(Box::new(NotPublic) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Refuses a URL whose host is an address, which no resolver sees, if that is no public one.
pub(crate) fn check_literal(url: &Url, what: &str) -> Result<()> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        _ => return Ok(()),
    };
    if is_public(address) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::PermissionDenied, format!("{what}: {NotPublic}")))
}

/// Whether an address is one of the public network (IANA's registries of special-purpose addresses).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let last_four = Ipv4Addr::from(((u32::from(parts[6])) << 16) | u32::from(parts[7]));
    match parts {
        // Addresses of the other kind in another dress: mapped, translated (RFC 6052), 6to4.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => is_public_v4(last_four),
        [0x2002, a, b, ..] => is_public_v4(Ipv4Addr::from((u32::from(a) << 16) | u32::from(b))),
        // Teredo and other protocols' own, documentation.
        [0x2001, b, ..] if b < 0x200 || b == 0xdb8 => false,
        [0x3fff, b, ..] if b < 0x1000 => false,
        // Global unicast, of which all public addresses are.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_networks_of_ones_own_are_told_apart() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for inside in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "100.64.0.1",
            "100.127.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "fec0::1",
        ] {
            assert!(!public(inside), "{inside}");
        }
        for outside in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "193.0.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "2001:4860::1",
        ] {
            assert!(public(outside), "{outside}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "[::1]",
            "[::ffff:7f00:1]",
            "１２７.0.0.1",
        ] {
            let url = Url::parse(&format!("http://{host}/a")).unwrap();
            let e = check_literal(&url, "cannot read 'a'").unwrap_err();
            assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{host}");
            assert!(e.message().starts_with("cannot read 'a': its host is no public one"), "{e}");
        }
        check_literal(&Url::parse("http://8.8.8.8/a").unwrap(), "").unwrap();
    }
}
