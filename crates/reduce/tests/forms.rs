//! Forms of reductions: what they look like, that they come back, and that no text does any harm.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test

use std::collections::BTreeMap;

use proptest::prelude::*;
use sieva_reduce::forms::{Attribute, Bounds, Config, Group, Variable};
use sieva_reduce::{
    CompareOp, Condition, DatePart, Dim, Function, Key, Literal, MAX_NESTED, Operand, Reduction, Select,
};
use sieva_types::ErrorKind;

/// Figure 2, mended: the type in quotes, elements closed, `\n` where the figure has `\s`.
const FIGURE_2: &str = r#"<?xml version="1.0"?>
<adios-config host-language="Fortran">

  <adios-group name="restart" coordination-communicator="comm">
    <var name="mype" type="integer"/>
    <var name="numberpe" type="integer"/>
    <var name="istep" type="integer"/>
    <var name="MIMAX_VAR" type="integer"/>
    <var name="NX" type="integer"/>
    <var name="NY" type="integer"/>
    <var name="zion0_1Darray" gwrite="zion0" type="double"
      dimensions="MIMAX_VAR"/>
    <var name="phi_2Darray" gwrite="phi" type="double" dimensions="NX, NY"/>
  </adios-group>
  <method group="restart" method="MPI"/>
  <buffer size-MB="20" allocate-time="now"/>

  <!-- for reader.xml -->
  <rd type="8" name="phi_2Darray" cod="int i;\n\ndouble sum = 0.0;\n\nfor(i = 0;
    i&lt;input.count; i= i+1) {\n\nsum = sum + input.vals[i];\n}\nreturn sum;\n"/>
</adios-config>
"#;

#[test]
fn figure_2_is_read_once_it_is_well_formed() {
    let config = Config::from_xml(FIGURE_2).unwrap();
    assert_eq!(config.language.as_deref(), Some("Fortran"));
    let [group] = config.groups.as_slice() else { panic!("{config:?}") };
    assert_eq!((group.name.as_str(), group.variables.len()), ("restart", 8));
    assert_eq!(group.properties["coordination-communicator"], "comm");
    let phi = &group.variables[7];
    assert_eq!((phi.gwrite.as_deref(), phi.value_type.as_deref()), (Some("phi"), Some("double")));
    assert_eq!(phi.dimensions, ["NX", "NY"]);
    let Reduction::Code(code) = &config.reductions[0] else { panic!("{config:?}") };
    let expected = "int i;\n\ndouble sum = 0.0;\n\nfor(i = 0;     i<input.count; i= i+1) {\n\nsum = sum + input.vals[i];\n}\nreturn sum;\n";
    assert_eq!((code.variable.as_str(), code.source.as_str()), ("phi_2Darray", expected));
    // Variables without a function are asked for whole.
    let asked = config.asked();
    assert_eq!(asked.len(), 8);
    assert_eq!(asked[1], Reduction::whole("mype"));
    for again in [Config::from_xml(&config.to_xml().unwrap()), Config::from_toml(&config.to_toml().unwrap())]
    {
        assert_eq!(again.unwrap(), config);
    }
    // As it is printed in the paper it is no XML.
    let printed = FIGURE_2.replace("type=\"8\"", "type=8");
    let e = Config::from_xml(&printed).unwrap_err();
    assert!(e.message().starts_with("XML, line 19, rd: not well-formed"), "{e}");
}

#[test]
fn each_type_has_its_xml_and_its_toml() {
    let date = |text: &str| Literal::Text(text.to_owned());
    let below = Condition::compare("v", CompareOp::Lt, Reduction::quantile("v", 0.9));
    for (reduction, xml, toml) in [
        (Reduction::whole("v"), "<rd type=\"whole\" name=\"v\"/>\n", "name = \"v\"\ntype = \"whole\"\n"),
        (Reduction::max("v"), "<rd type=\"1\" name=\"v\"/>\n", "name = \"v\"\ntype = \"max\"\n"),
        (
            Reduction::range("v", "x", 2, 5),
            "<rd type=\"4\" name=\"v\" dimension=\"x\" end=\"5\" start=\"2\"/>\n",
            "dimension = \"x\"\nend = 5\nname = \"v\"\nstart = 2\ntype = \"range\"\n",
        ),
        (
            Reduction::between("t", date("2000-01-01"), date("2001-01-01")),
            "<rd type=\"5\" name=\"t\" threshold1=\"'2000-01-01'\" threshold2=\"'2001-01-01'\"/>\n",
            "name = \"t\"\nthreshold1 = \"2000-01-01\"\nthreshold2 = \"2001-01-01\"\ntype = \"between\"\n",
        ),
        (
            Reduction::compare("v", CompareOp::GtEq, Reduction::mean("v")),
            "<rd type=\"6\" name=\"v\" function=\"mean\" op=\"&gt;=\"/>\n",
            "function = \"mean\"\nname = \"v\"\nop = \">=\"\ntype = \"compare\"\n",
        ),
        (
            Reduction::compare("v", CompareOp::Gt, Literal::Int(3)).within(Condition::compare(
                "v",
                CompareOp::Lt,
                Reduction::max("w"),
            )),
            "<rd type=\"6\" name=\"v\" function2=\"max\" of2=\"w\" op=\"&gt;\" op2=\"&lt;\" value=\"3\"/>\n",
            "function2 = \"max\"\nname = \"v\"\nof2 = \"w\"\nop = \">\"\nop2 = \"<\"\ntype = \"compare\"\nvalue = 3\n",
        ),
        (
            Reduction::by_other("v", "w", Literal::Float(0.5), Literal::Int(1 << 70)),
            "<rd type=\"7\" name=\"v\" threshold1=\"0.5\" threshold2=\"1180591620717411303424\" variable1=\"w\"/>\n",
            "name = \"v\"\nthreshold1 = 0.5\ntype = \"by-other\"\nvariable1 = \"w\"\n\n[threshold2]\ninteger = \"1180591620717411303424\"\n",
        ),
        (
            Reduction::block_mean("v", &[1, 4]),
            "<rd type=\"block-mean\" name=\"v\" factors=\"1, 4\"/>\n",
            "factors = [1, 4]\nname = \"v\"\ntype = \"block-mean\"\n",
        ),
        (
            Reduction::max("v").within(below).by(Key::part(DatePart::Month, "t")),
            "<rd type=\"1\" name=\"v\">\n  <where type=\"6\" op=\"&lt;\">\n    <with type=\"quantile\" name=\"v\" q=\"0.9\"/>\n  </where>\n  <by name=\"t\" part=\"month\"/>\n</rd>\n",
            "name = \"v\"\ntype = \"max\"\n\n[[by]]\nname = \"t\"\npart = \"month\"\n\n[[where]]\nop = \"<\"\ntype = \"compare\"\n\n[where.with]\nname = \"v\"\nq = 0.9\ntype = \"quantile\"\n",
        ),
    ] {
        assert_eq!(reduction.to_xml().unwrap(), xml);
        assert_eq!(reduction.to_toml().unwrap(), toml);
        assert_eq!(Reduction::from_xml(xml).unwrap(), reduction);
        assert_eq!(Reduction::from_toml(toml).unwrap(), reduction);
    }
}

#[test]
fn other_ways_to_write_the_same() {
    let xml = |text: &str| Reduction::from_xml(text).unwrap();
    assert_eq!(xml("<rd name='v'/>"), Reduction::whole("v"));
    assert_eq!(xml("<rd type='mean' name='v'/>"), Reduction::mean("v"));
    assert_eq!(
        xml("<rd type='4' name='v' dimensions='2' start_pos='0' end_pos='0'/>"),
        Reduction::range("v", 1, 0, 1)
    );
    assert_eq!(
        xml("<rd type='range' name='v' dimensions='x' start_pos='3' end_pos='7'/>"),
        Reduction::range("v", "x", 3, 8)
    );
    assert_eq!(
        xml("<rd type='6' name='v' function='3'/>"),
        Reduction::compare("v", CompareOp::GtEq, Reduction::mean("v"))
    );
    assert_eq!(
        xml("<rd type='6' name='v' op='lt' value='1'/>"),
        Reduction::compare("v", CompareOp::Lt, Literal::Int(1))
    );
    assert_eq!(xml("<rd type='first' name='v' dimension=\"'0'\"/>"), Reduction::first("v", "0"));
    let toml = |text: &str| Reduction::from_toml(text).unwrap();
    assert_eq!(toml("name = 'v'\ntype = 3"), Reduction::mean("v"));
    let dates = "name = 't'\ntype = 5\nthreshold1 = 2000-01-01\nthreshold2 = 2000-01-02T06:00:00";
    let text = |t: &str| Literal::Text(t.to_owned());
    assert_eq!(toml(dates), Reduction::between("t", text("2000-01-01"), text("2000-01-02T06:00:00")));
    assert_eq!(toml("name = 'v'\ntype = 'quantile'\nq = 1"), Reduction::quantile("v", 1.0));
}

#[test]
fn mistakes_are_told_by_what_was_given_and_what_is_expected() {
    for (text, message) in [
        ("<rd type='9' name='v'/>", "no type '9' here"),
        ("<rd type='most' name='v'/>", "no type 'most' here"),
        ("<rd type='1'/>", "'name' is missing"),
        ("<rd type='1' name='v' q='1'/>", "'q' means nothing here"),
        ("<rd type='1' name='v'><rd name='w'/></rd>", "'rd' has no place below it, 'where' and 'by' have"),
        (
            "<rd type='4' name='v' dimension='x' start='-1' end='2'/>",
            "'start' is a whole number from 0, got -1",
        ),
        (
            "<rd type='4' name='v' dimension='x' start='1.5' end='2'/>",
            "'start' is a whole number from 0, got 1.5",
        ),
        ("<rd type='4' name='v' dimension='x' start='1'/>", "'end' is missing"),
        (
            "<rd type='4' name='v' dimensions='0' start_pos='1' end_pos='2'/>",
            "'dimensions' counts from 1, got 0",
        ),
        ("<rd type='4' name='v' dimensions='1' start='1' end_pos='2'/>", "a range is said by"),
        (
            "<rd type='4' name='v' dimensions='1' start_pos='1' end_pos='18446744073709551615'/>",
            "'end_pos' is too great",
        ),
        (
            "<rd type='5' name='v' threshold1='2000-01-01' threshold2='2'/>",
            "'threshold1' is no number and no text in single quotes: 2000-01-01",
        ),
        ("<rd type='6' name='v' op='~' value='1'/>", "no operator '~'"),
        (
            "<rd type='6' name='v' op='&lt;'/>",
            "values are compared with one of 'value', 'function' and 'with' below",
        ),
        ("<rd type='6' name='v' function='mean' value='1'/>", "values are compared with one of"),
        ("<rd type='6' name='v' function='whole'/>", "no function 'whole' to compare with"),
        ("<rd type='6' name='v' value='1' value2='2'/>", "'op2' is missing"),
        ("<rd type='histogram' name='v' bins='4' low='1'/>", "'low' and 'high' of a histogram go together"),
        ("<rd type='block-mean' name='v' factors='1,x'/>", "'factors' is a list of whole numbers from 0"),
        ("<rd type='1' name='v'><by name='t' part='week'/></rd>", "no part 'week' of a date"),
        ("<rd type='1' name='v'><where type='7'/></rd>", "no type 'by-other' here"),
        ("<rd type='1' name='v'><where type='4' dimension='x' start='3' end='1'/></rd>", "got 3 to 1"),
        ("<group/>", "a reduction is an 'rd'"),
    ] {
        let e = Reduction::from_xml(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{text}: {e}");
        assert!(e.message().contains(message) && e.message().starts_with("XML, line 1"), "{text}: {e}");
    }
    for (text, message) in [
        ("name = ", "not TOML"),
        ("name = 5", "TOML: 'name' is a text, got a number"),
        ("name = 'v'\ntype = [1]", "'type' is a number from 1 to 8, or a word"),
        ("name = 'v'\ntype = 'quantile'\nq = 'x'", "'q' is a number, got 'x'"),
        (
            "name = 'v'\nwhere = [{type = 'first', dimension = 1.5}]",
            "TOML, where 1: 'dimension' is a dimension",
        ),
        ("name = 'v'\nwhere = [{type = 'first', dimension = 0}, 5]", "'where' is a list of tables"),
        (
            "name = 'v'\ntype = 'between'\nthreshold1 = {integer = '1x'}\nthreshold2 = 5",
            "an integer that is none",
        ),
    ] {
        let e = Reduction::from_toml(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{text}: {e}");
        assert!(e.message().contains(message), "{text}: {e}");
    }
    let e = Config::from_xml("<adios-config><rb/></adios-config>").unwrap_err();
    assert_eq!(e.message(), "XML, line 1, rb: it means nothing here");
    let deep = format!("name = 'v'\nx = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Reduction::from_toml(&deep).unwrap_err().message().contains("not TOML"));
}

#[test]
fn reductions_in_one_another_come_back_as_deep_as_they_may_be() {
    let mut deep = Reduction::mean("v");
    for _ in 0..MAX_NESTED {
        deep = Reduction::mean("v").within(Condition::compare("v", CompareOp::Gt, deep));
    }
    assert_eq!(Reduction::from_toml(&deep.to_toml().unwrap()).unwrap(), deep);
    let config = Config { reductions: vec![deep.clone()], ..Config::default() };
    assert_eq!(Config::from_xml(&config.to_xml().unwrap()).unwrap(), config);
    assert_eq!(Config::from_toml(&config.to_toml().unwrap()).unwrap(), config);
    let deeper = Reduction::mean("v").within(Condition::compare("v", CompareOp::Gt, deep));
    assert_eq!(deeper.to_xml().unwrap_err().kind(), ErrorKind::InvalidValue);
}

#[test]
fn global_bounds_and_functions_in_a_group() {
    let text = r#"<adios-config><adios-group name="g"><attribute name="unit" path="/v" value="K" type="string"/>
        <global-bounds dimensions="N, 10" offsets="O,0"><var name="v" type="real" dimensions="M, 10" path="/p"/></global-bounds>
        <rd type="1" name="v"/></adios-group></adios-config>"#;
    let config = Config::from_xml(text).unwrap();
    let v = &config.groups[0].variables[0];
    let bounds = v.bounds.clone().unwrap();
    assert_eq!(
        (bounds.dimensions.join("|"), bounds.offsets.join("|")),
        ("N|10".to_owned(), "O|0".to_owned())
    );
    assert_eq!((v.properties["path"].as_str(), v.dimensions.join("|")), ("/p", "M|10".to_owned()));
    assert_eq!(config.groups[0].attributes[0].properties["value"], "K");
    assert_eq!((config.asked(), config.reductions.len()), (vec![Reduction::max("v")], 1));
    let toml = config.to_toml().unwrap();
    assert!(toml.contains("[group.variable.bounds]"), "{toml}");
    assert_eq!(Config::from_toml(&toml).unwrap(), config);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z_][A-Za-z0-9_]{0,8}",
        // What is written in forms and in SQL: quotes, blanks, digits alone, other scripts.
        r#"[ -~äßΩ中😀]{1,10}"#,
        "[0-9]{1,3}",
        Just("'".to_owned()),
        Just("''".to_owned()),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    let special =
        [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX, 1e16, 123_456_789_012_345_680.0];
    prop_oneof![prop::num::f64::NORMAL, prop::sample::select(special.to_vec())]
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<i128>().prop_map(Literal::Int),
        any::<i16>().prop_map(|i| Literal::Int(i.into())),
        float().prop_map(Literal::Float),
        r#"[ -~äß中\n\t\r]{0,12}"#.prop_map(Literal::Text),
    ]
}

fn dim() -> impl Strategy<Value = Dim> {
    prop_oneof![(0_usize..9).prop_map(Dim::Position), name().prop_map(Dim::Name)]
}

fn function() -> impl Strategy<Value = Function> {
    let simple = vec![
        Function::Max,
        Function::Min,
        Function::Mean,
        Function::Count,
        Function::Sum,
        Function::Variance,
        Function::SampleVariance,
        Function::StdDev,
        Function::SampleStdDev,
    ];
    let range = prop_oneof![Just(None), (-1e6..0.0, 1e-9..1e9).prop_map(Some)];
    prop_oneof![
        prop::sample::select(simple),
        (0.0..=1.0).prop_map(Function::Quantile),
        (1_u32..1 << 20, range).prop_map(|(bins, range)| Function::Histogram { bins, range }),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        name().prop_map(Key::Value),
        (prop::sample::select(DatePart::ALL), name())
            .prop_map(|(part, variable)| Key::Part { part, variable }),
        (1e-9..1e9, name()).prop_map(|(width, variable)| Key::Band { variable, width }),
        (dim(), 1..=i64::MAX as u64).prop_map(|(dimension, factor)| Key::Block { dimension, factor }),
        prop::collection::vec(1_u64..1 << 40, 0..4).prop_map(Key::Blocks),
    ]
}

/// Conditions whose variable is often `own`; `with` draws what values are compared with.
fn condition(own: String, with: BoxedStrategy<Operand>) -> impl Strategy<Value = Condition> {
    let variable = || prop_oneof![Just(own.clone()), name()];
    let numbers = (any::<i16>(), float());
    let texts = ("[a-z']{0,4}", r#"[ -~\n]{0,9}"#);
    prop_oneof![
        (dim(), 0_u64..1 << 40, 0_u64..1 << 40).prop_map(|(dimension, start, more)| Condition::Range {
            dimension,
            start,
            end: start + more
        }),
        dim().prop_map(Condition::First),
        dim().prop_map(Condition::Last),
        (variable(), numbers).prop_map(|(v, (a, b))| Condition::between(
            &v,
            Literal::Int(a.into()),
            Literal::Float(b)
        )),
        (variable(), texts).prop_map(|(v, (a, b))| Condition::between(
            &v,
            Literal::Text(a),
            Literal::Text(b)
        )),
        (variable(), prop::sample::select(CompareOp::ALL), with)
            .prop_map(|(variable, op, with)| Condition::Compare { variable, op, with }),
    ]
}

fn operand(reduction: BoxedStrategy<Reduction>) -> BoxedStrategy<Operand> {
    // Those that are one value.
    let single = reduction.prop_map(|r| match r {
        Reduction::Select(s) => {
            let function = match s.function {
                Function::Values | Function::Histogram { .. } => Function::Mean,
                other => other,
            };
            Operand::from(Reduction::Select(Select { function, by: Vec::new(), ..s }))
        }
        Reduction::Code(c) => Operand::from(Reduction::max(&c.variable)),
        sql => Operand::from(sql),
    });
    prop_oneof![
        literal().prop_map(Operand::Literal),
        any::<bool>().prop_map(|b| Operand::Literal(Literal::Bool(b))),
        single
    ]
    .boxed()
}

fn reduction() -> impl Strategy<Value = Reduction> {
    let leaf = prop_oneof![
        (name(), function()).prop_map(|(v, f)| Reduction::of(&v, f)),
        name().prop_map(|v| Reduction::whole(&v)),
        (name(), r#"[ -~ä\n\t\r\\]{1,30}"#).prop_map(|(v, s)| Reduction::code(&v, &format!("x{s}"))),
        r#"[ -~ä\n]{1,30}"#.prop_map(|s| Reduction::Sql(format!("SELECT {s}"))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let with = operand(inner.boxed());
        name().prop_flat_map(move |own| {
            let conditions = prop::collection::vec(condition(own.clone(), with.clone()), 0..3);
            let grouped = (function(), prop::collection::vec(key(), 0..3));
            let what = prop_oneof![Just((Function::Values, Vec::new())), grouped];
            (Just(own), conditions, what).prop_map(|(variable, conditions, (function, by))| {
                Reduction::Select(Select { variable, function, conditions, by })
            })
        })
    })
}

fn properties() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("x-[a-z]{1,5}", r#"[ -~ä\n]{0,9}"#, 0..3)
}

fn config() -> impl Strategy<Value = Config> {
    let dims = || prop::collection::vec("[A-Za-z0-9_]{1,5}", 0..3);
    let bounds =
        prop::option::of((dims(), dims()).prop_map(|(dimensions, offsets)| Bounds { dimensions, offsets }));
    let variable = (
        name(),
        prop::option::of("range|double|code"),
        prop::option::of(name()),
        dims(),
        bounds,
        properties(),
    );
    let variable = variable.prop_map(|(name, value_type, gwrite, dimensions, bounds, properties)| Variable {
        name,
        value_type,
        gwrite,
        dimensions,
        bounds,
        properties,
    });
    let attribute = (name(), properties()).prop_map(|(name, properties)| Attribute { name, properties });
    let group =
        (name(), properties(), prop::collection::vec(variable, 0..4), prop::collection::vec(attribute, 0..3));
    let group = group.prop_map(|(name, properties, variables, attributes)| Group {
        name,
        properties,
        variables,
        attributes,
    });
    let groups = prop::collection::vec(group, 0..3);
    (prop::option::of(name()), groups, prop::collection::vec(reduction(), 0..3))
        .prop_map(|(language, groups, reductions)| Config { language, groups, reductions })
}

proptest! {
    #[test]
    fn a_reduction_comes_back_from_xml_and_from_toml(reduction in reduction()) {
        let xml = reduction.to_xml().unwrap();
        let again = Reduction::from_xml(&xml);
        prop_assert_eq!(again.as_ref(), Ok(&reduction), "{}", xml);
        let toml = reduction.to_toml().unwrap();
        let again = Reduction::from_toml(&toml);
        prop_assert_eq!(again.as_ref(), Ok(&reduction), "{}", toml);
    }

    #[test]
    fn a_document_comes_back_from_xml_and_from_toml(config in config()) {
        let xml = config.to_xml().unwrap();
        let again = Config::from_xml(&xml);
        prop_assert_eq!(again.as_ref(), Ok(&config), "{}", xml);
        let toml = config.to_toml().unwrap();
        let again = Config::from_toml(&toml);
        prop_assert_eq!(again.as_ref(), Ok(&config), "{}", toml);
    }

    #[test]
    fn damaged_documents_are_errors_or_documents(config in config(), at in any::<prop::sample::Index>(), with in "[ -~\n<>&'\"]{0,3}") {
        for (text, read) in [
            (config.to_xml().unwrap(), Config::from_xml as fn(&str) -> sieva_types::Result<Config>),
            (config.to_toml().unwrap(), Config::from_toml),
        ] {
            let mut start = at.index(text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let end = text[start..].char_indices().nth(2).map_or(text.len(), |(i, _)| start + i);
            match read(&format!("{}{with}{}", &text[..start], &text[end..])) {
                // What was read is written and read again.
                Ok(found) => prop_assert_eq!(Config::from_toml(&found.to_toml().unwrap()).unwrap(), found),
                Err(e) => prop_assert!(matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::TypeMismatch | ErrorKind::Unsupported), "{}", e),
            }
        }
    }

    #[test]
    fn any_text_is_an_error_or_a_document(text in r#"[<>/="'a-z\[\]{}!&;#\n -]{0,60}"#) {
        let _ = Config::from_xml(&text).map(|c| c.to_xml().unwrap());
        let _ = Config::from_toml(&text);
        let _ = Reduction::from_xml(&text);
    }
}

/// Texts in backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_page_of_reductions_says_what_is() {
    let page = include_str!("../../../docs/understanding/reductions.md");
    let of = |dims: &[&str]| dims.iter().map(|&d| d.to_owned()).collect::<Vec<_>>();
    let mut rows = 0;
    for line in page.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [_, _, sql, xml, toml] = cells[..] else { continue };
        let (sql, xml, toml) = (quoted(sql), quoted(xml), quoted(toml));
        // Not the rows of several functions.
        let ([sql], [xml], [_, ..]) = (&sql[..], &xml[..], &toml[..]) else { continue };
        let name = if xml.contains("text=") { "" } else { "name=\"v\"" };
        let xml = if xml.starts_with("<rd") { (*xml).to_owned() } else { format!("<rd {name} {xml}/>") };
        let toml = format!("{}{}", if name.is_empty() { "" } else { "name = 'v'\n" }, toml.join("\n"));
        let (read, from_toml) = (Reduction::from_xml(&xml).unwrap(), Reduction::from_toml(&toml).unwrap());
        assert_eq!(read, from_toml, "{line}");
        if xml.contains("cod=") {
            // What code gets is a query; what it makes of that is none.
            let refused = read.to_sql(&|_| Ok(of(&["t"]))).unwrap_err();
            assert_eq!((refused.kind(), *sql), (ErrorKind::Unsupported, "SELECT v"), "{line}");
        } else {
            let dims = of(if xml.contains("factors") { &["y", "x"] } else { &["t", "y", "x"] });
            assert_eq!(read.to_sql(&|_| Ok(dims.clone())).unwrap(), *sql, "{line}");
        }
        rows += 1;
    }
    assert!(rows >= 12, "{rows} rows");
    let start = page.find("<rd type=\"3\" name=\"TEMP\">").unwrap();
    let example = &page[start..start + page[start..].find("</rd>").unwrap() + 5];
    let sql = Reduction::from_xml(example).unwrap().to_sql(&|_| Ok(of(&["time", "depth"]))).unwrap();
    assert!(page.replace('\n', " ").contains(&sql), "{sql}");
}
