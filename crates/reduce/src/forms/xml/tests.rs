//! Hostile and broken XML.

use super::super::{Config, MAX_ATTRIBUTES, MAX_DEPTH, MAX_ELEMENTS, MAX_TEXT, MAX_VALUE};
use crate::Reduction;

fn refused(text: &str) -> String {
    Config::from_xml(text).unwrap_err().message().to_owned()
}

fn document(inner: &str) -> String {
    format!("<adios-config>{inner}</adios-config>")
}

#[test]
fn what_could_grow_is_refused() {
    let bomb = "<!DOCTYPE b [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>";
    assert!(refused(&format!("{bomb}{}", document(""))).contains("document type"));
    assert!(refused(&format!("<?xml version=\"1.0\"?>\n{bomb}{}", document(""))).contains("line 2"));
    assert!(refused(&document("<rd type=\"1\" name=\"&b;\"/>")).contains("'name' is not well-formed"));
    assert!(refused(&document("&b;")).contains("nothing between"));
    let external = "<!DOCTYPE a SYSTEM \"file:///etc/passwd\">";
    assert!(refused(&format!("{external}{}", document(""))).contains("document type"));
}

#[test]
fn limits_are_kept_at_their_edges() {
    let deep = |n: usize| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
    assert!(refused(&deep(MAX_DEPTH)).contains("the document is an 'adios-config'"));
    assert!(refused(&deep(MAX_DEPTH + 1)).contains("deeper in one another than 64"));
    assert!(refused(&"<a>".repeat(1_000_000)).contains("deeper"));
    let many = |n: usize| document(&"<method/>".repeat(n));
    assert_eq!(Config::from_xml(&many(MAX_ELEMENTS - 1)).unwrap(), Config::default());
    assert!(refused(&many(MAX_ELEMENTS)).contains("more than 20000 elements"));
    let attributes = |n: usize| {
        document(&format!("<method {}/>", (0..n).map(|i| format!("a{i}=\"\" ")).collect::<String>()))
    };
    assert_eq!(Config::from_xml(&attributes(MAX_ATTRIBUTES)).unwrap(), Config::default());
    assert!(refused(&attributes(MAX_ATTRIBUTES + 1)).contains("more than 64 attributes"));
    assert!(refused(&attributes(200_000)).contains("more than 64 attributes"));
    let long = |n: usize| document(&format!("<method a=\"{}\"/>", "x".repeat(n)));
    assert_eq!(Config::from_xml(&long(MAX_VALUE)).unwrap(), Config::default());
    assert!(refused(&long(MAX_VALUE + 1)).contains("'a' of 262145 bytes, at most 262144"));
    assert!(refused(&" ".repeat(MAX_TEXT + 1)).contains("at most 4194304 are read"));
    assert!(
        refused(&document(&format!("<rd name=\"v\" type=\"8\" cod=\"{}\"/>", "x".repeat(1 << 17))))
            .contains("131072 bytes")
    );
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for (text, part) in [
        ("", "without an element"),
        ("text", "nothing between"),
        ("<adios-config>", "ends within 'adios-config'"),
        ("<adios-config></rd>", "not well-formed"),
        ("</adios-config>", "not well-formed"),
        ("<adios-config/><adios-config/>", "a second element"),
        ("<adios-config><rd type=8 name=\"v\"/></adios-config>", "not well-formed"),
        ("<adios-config><rd type=\"1\" type=\"2\" name=\"v\"/></adios-config>", "not well-formed"),
        ("<adios-config><rd type=\"1\" name=\"a<b\"/></adios-config>", "is written &lt;"),
        ("<adios-config><rd type=\"1\" name=\"&#1;\"/></adios-config>", "XML does not"),
        ("<adios-config><rd type=\"1\" name=\"&#xFFFF;\"/></adios-config>", "XML does not"),
        ("<adios-config><rd type=\"1\" name=\"&#0;\"/></adios-config>", "not well-formed"),
        ("<adios-config><![CDATA[x]]></adios-config>", "nothing between"),
        ("<adios-config><?php x?></adios-config>", "nothing between"),
        ("<adios-config/><?xml version=\"1.0\"?>", "nothing between"),
        ("<?xml version=\"1.1\"?><adios-config/>", "version 1.0"),
        ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><adios-config/>", "not in utf-16"),
        ("<adios-config", "not well-formed"),
        ("<!-- a -- b --><adios-config/>", "not well-formed"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn line_feeds_of_code_and_of_other_attributes() {
    let code = Reduction::code("v", "int i;\n\tprintf(\"\\n\");\r\n");
    let text = code.to_xml().unwrap();
    assert_eq!(text, "<rd type=\"8\" name=\"v\" cod=\"int i;\\n\\tprintf(&quot;\\\\n&quot;);\\r\\n\"/>\n");
    assert_eq!(Reduction::from_xml(&text).unwrap(), code);
    // A line feed as such is a blank in an attribute.
    let broken = Reduction::from_xml("<rd type='8' name='v' cod='a\n  b'/>").unwrap();
    assert_eq!(broken, Reduction::code("v", "a   b"));
    let e = Reduction::from_xml("<rd type='8' name='v' cod='{\\sum'/>").unwrap_err();
    assert_eq!(e.message(), "XML, line 1, rd: 'cod' has '\\s', which stands for nothing");
    let sql = Reduction::Sql("SELECT v\nWHERE v < 1 AND s = '<&>\"'".to_owned());
    assert_eq!(Reduction::from_xml(&sql.to_xml().unwrap()).unwrap(), sql);
    let e = Reduction::Sql("SELECT '\u{1}'".to_owned()).to_xml().unwrap_err();
    assert_eq!(e.message(), "'text': XML has no character '\\u{1}'");
}
