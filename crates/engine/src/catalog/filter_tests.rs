//! Tests of what texts mean to a catalog.

use super::*;

fn ok(text: &str) -> Filter {
    parse_filter(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

#[test]
fn texts_become_filters() {
    let eq = |k: &str, v: f64| Filter::equal(k, v);
    assert_eq!(
        ok("RADEG = 153.17 AND DECDEG = 23.06"),
        Filter::And(vec![eq("RADEG", 153.17), eq("DECDEG", 23.06)])
    );
    assert_eq!(
        ok("a=1 or b = 2.5e-3 and not c <> 'it''s'"),
        Filter::Or(vec![
            Filter::equal("a", 1i64),
            Filter::And(vec![eq("b", 2.5e-3), not(Filter::compare("c", Comparison::Ne, "it's"))])
        ])
    );
    assert_eq!(ok("-5 < \"DATE-OBS\""), Filter::compare("DATE-OBS", Comparison::Gt, -5i64));
    let between = Filter::Between("x".into(), 1i64.into(), 2i64.into());
    assert_eq!(ok("x BETWEEN 1 AND +2"), between);
    assert_eq!(ok("1 <= x <= 2"), between);
    assert_eq!(ok("x NOT BETWEEN 1 AND 2"), not(between));
    assert_eq!(ok("u = 18446744073709551615"), Filter::equal("u", u64::MAX));
    assert_eq!(ok("u = 1e20"), Filter::equal("u", 1e20));
    assert_eq!(
        ok("((x IN (1, 'a', TRUE)))"),
        Filter::In("x".into(), vec![1i64.into(), "a".into(), true.into()])
    );
    assert_eq!(ok("x IN ()"), Filter::In("x".into(), Vec::new()));
    assert_eq!(ok("x IS NOT NULL"), not(Filter::IsNull("x".into())));
    assert_eq!(ok("EXISTS \"a\"\"b\""), Filter::Exists("a\"b".into()));
    assert_eq!(ok("exists(x)"), Filter::Exists("x".into()));
    assert_eq!(ok("tag(object) LIKE 'a%' "), Filter::Like("object".into(), "a%".into()));
    assert_eq!(ok(r"x LIKE 'a\%'"), Filter::Like("x".into(), r"a\%".into()));
    assert_eq!(ok("x not glob 'a*'"), not(Filter::Glob("x".into(), "a*".into())));
    assert_eq!(
        ok("glob = 1 AND exists = 2"),
        Filter::And(vec![Filter::equal("glob", 1i64), Filter::equal("exists", 2i64)])
    );
    assert_eq!(ok("spec.Z:1 = .5"), eq("spec.Z:1", 0.5));
}

#[test]
fn an_error_says_where_and_what() {
    let e = parse_filter("RADEG 153.17").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Syntax);
    let expected = "syntax error at line 1, column 7: expected an operator, AND, OR or the end of the text, found \
                    '153.17'\n  RADEG 153.17\n        ^";
    assert_eq!(e.message(), expected);
    for (text, part) in [
        ("", "expected a condition, found the end of the text"),
        ("a = ", "expected a value"),
        ("a = 1 b = 2", "column 7: expected an operator, AND, OR or the end of the text, found 'b'"),
        ("(a = 1", "or ')'"),
        ("a = 'x", "column 5: string is not closed"),
        ("a = b", "it does not answer: a = b"),
        ("a + 1 = 2", "it does not answer: a + 1 = 2"),
        ("x = 1 OR good", "it does not answer: good"),
        ("x IN (1, NULL)", "it does not answer: x IN (1, NULL)"),
        ("sqrt(x) > 2", "it does not answer: sqrt(x) > 2"),
        ("a = 1.2.3", "malformed number '1.2.3'"),
        ("a = 1; DROP TABLE objects", "found ';'"),
        ("x BETWEEN 1 OR 2", "AND and the upper end"),
        ("and = 1", "column 1"),
        ("é = 1 é", "column 7"),
    ] {
        let e = parse_filter(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Syntax, "{text}");
        assert!(e.message().contains(part), "{text}: {e}");
    }
    assert_eq!(parse_filter("x like 5").unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(parse_filter("a > (SELECT b FROM c)").unwrap_err().kind(), ErrorKind::Unsupported);
    for great in ["a = 99999999999999999999", "a IN (1, -99999999999999999999)"] {
        assert_eq!(parse_filter(great).unwrap_err().kind(), ErrorKind::Overflow);
    }
}

#[test]
fn a_pattern_of_a_query_has_no_escapes() {
    let columns = [Column::of_object("k", ColumnKind::Key)];
    let like = Expr::Like(Box::new(Expr::Column(ColumnId(0))), r"a\_%".into());
    let asked = filter_of(&columns, &like, Backslash::Stands).unwrap();
    assert_eq!(asked, Filter::Like("k".into(), r"a\\_%".into()));
}

#[test]
fn what_names_an_array_is_not_the_catalogs() {
    let columns = [Column::of_object("flux", ColumnKind::Value), Column::of_object("z", ColumnKind::Key)];
    let above = |id| Expr::compare(CompareOp::Gt, Expr::Column(ColumnId(id)), Expr::Literal(Literal::Int(0)));
    assert!(filter_of(&columns, &above(1), Backslash::Stands).is_ok());
    let both = Expr::Or(vec![above(1), above(0)]);
    assert_eq!(filter_of(&columns, &both, Backslash::Stands), Err(&above(0)));
}

#[test]
fn ends_of_one_key_are_one_range_wherever_they_stand() {
    let range = Filter::Between("a".into(), 1i64.into(), 3i64.into());
    assert_eq!(ok("a <= 3 AND b = 2 AND a >= 1"), Filter::And(vec![range, Filter::equal("b", 2i64)]));
    let open = vec![Filter::compare("a", Comparison::Gt, 1i64), Filter::compare("a", Comparison::Le, 3i64)];
    assert_eq!(ok("a > 1 AND a <= 3"), Filter::And(open));
}
