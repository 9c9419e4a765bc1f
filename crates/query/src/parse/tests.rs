//! Texts and the trees, printed, or the errors that they give.

use super::*;
use crate::ast::{BinaryOp, Literal, Name, Projection, Span};
use sieva_types::ErrorKind;

/// Each text is read as the other text prints; both must be the same tree, and print alike.
fn assert_expressions(table: &[(&str, &str)]) {
    for (text, printed) in table {
        let tree = parse_expression(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(tree.to_string(), *printed, "{text}");
        assert_eq!(parse_expression(printed).as_ref(), Ok(&tree), "{text} printed and read again");
    }
}

/// Each text is refused for what follows the place, with a hint that contains the last.
fn assert_errors<T: std::fmt::Debug>(parse: fn(&str) -> Result<T>, table: &[(&str, &str, &str)]) {
    for (text, message, hint) in table {
        let error = parse(text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Syntax);
        let first_line = error.message().lines().next().unwrap_or("");
        assert_eq!(first_line, format!("syntax error at line 1, column {message}"), "{text}");
        let given = error.hint_text().unwrap_or("");
        assert!(given.contains(hint) && given.is_empty() == hint.is_empty(), "{text}: hint is: {given}");
    }
}

#[test]
fn conditions() {
    assert_expressions(&[
        ("TEMP > 5 AND z_t < 5000", "TEMP > 5 AND z_t < 5000"),
        ("temp>5 and not (a or b)", "temp > 5 AND NOT (a OR b)"),
        ("a or b and c", "a OR b AND c"),
        ("(a or b) and c", "(a OR b) AND c"),
        ("a and (b and (c and d))", "a AND b AND c AND d"),
        ("((a or b)) or c", "a OR b OR c"),
        ("not a = 1", "NOT (a = 1)"),
        ("not not a", "NOT NOT a"),
        ("not a and b", "NOT a AND b"),
        ("a == 1 or b != 2 or c <> 3", "a = 1 OR b <> 2 OR c <> 3"),
        (
            "TLAT BETWEEN 18 AND 31 AND TLONG between 262 and 280",
            "TLAT BETWEEN 18 AND 31 AND TLONG BETWEEN 262 AND 280",
        ),
        ("a not between b - 1 and b + 1", "a NOT BETWEEN b - 1 AND b + 1"),
        ("a in (1, -2, 'x', NULL)", "a IN (1, -2, 'x', NULL)"),
        ("a NOT IN (1)", "a NOT IN (1)"),
        ("a is null or b + 1 Is Not Null", "a IS NULL OR b + 1 IS NOT NULL"),
        ("name like 'ab%' and not name not like '_'", "name LIKE 'ab%' AND NOT (name NOT LIKE '_')"),
        ("(a = b) = TRUE", "(a = b) = TRUE"),
        ("TEMP > (SELECT avg(TEMP) FROM 'x.nc')", "TEMP > (SELECT avg(TEMP) FROM 'x.nc')"),
        ("time >= date '1999-01-01'", "time >= DATE '1999-01-01'"),
        ("time < TIMESTAMP '1999-01-01 12:00'", "time < TIMESTAMP '1999-01-01 12:00'"),
        ("a /* one */ > -- two\n 5", "a > 5"),
    ]);
}

#[test]
fn chains_of_comparisons_hold_pairwise() {
    assert_expressions(&[
        ("1 < x < 2", "1 < x AND x < 2"),
        ("0 <= x + 1 < y == z", "0 <= x + 1 AND x + 1 < y AND y = z"),
        ("1 < x < 2 or y", "1 < x AND x < 2 OR y"),
        ("a and 1 < x < 2", "a AND 1 < x AND x < 2"),
        ("not 1 < x < 2", "NOT (1 < x AND x < 2)"),
        ("1 < if(x > 2, x, 0) < 5", "1 < if(x > 2, x, 0) AND if(x > 2, x, 0) < 5"),
        ("1 < 2 * (x > 2) < 5", "1 < 2 * (x > 2) AND 2 * (x > 2) < 5"),
        ("x in ()", "x IN ()"),
        ("x + 1 NOT IN ( )", "x + 1 NOT IN ()"),
    ]);
}

#[test]
fn python_operators_between_parentheses() {
    assert_expressions(&[
        ("(a > 5) & (b < 3)", "a > 5 AND b < 3"),
        ("(a > 5) | (b < 3) & (c = 1)", "a > 5 OR b < 3 AND c = 1"),
        ("~(a > 5) & mask", "NOT (a > 5) AND mask"),
        ("~~isfinite(a)", "NOT NOT isfinite(a)"),
        ("((a > 5) & ~(b < 3)) | (c == 1)", "a > 5 AND NOT (b < 3) OR c = 1"),
        // As in Python, `|` binds tighter than `and`.
        ("a > 1 and (b > 2) | (c > 3)", "a > 1 AND (b > 2 OR c > 3)"),
        ("not (a > 1) & (b > 2)", "NOT (a > 1 AND b > 2)"),
    ]);
    let parentheses = |symbol| format!("'{symbol}' needs parentheses around the conditions that it joins");
    let hint = "write (a > 5) & (b < 3), or a > 5 AND b < 3";
    for (text, column, symbol) in [
        ("a > 5 & b < 3", 7, '&'),
        ("(a > 5) & b < 3", 9, '&'),
        ("a > 5 & (b < 3)", 7, '&'),
        ("a > b & (c < 3)", 7, '&'),
        ("a > b | c", 7, '|'),
        ("a IS NULL & (b)", 11, '&'),
        ("not a | b = 1", 7, '|'),
        ("~a > 5", 1, '~'),
        ("~5", 1, '~'),
        ("(a) & (b) + 1", 5, '&'),
        ("-~(a)", 2, '~'),
        ("x BETWEEN 1 AND 2 & (y)", 19, '&'),
    ] {
        assert_errors(parse_condition, &[(text, &format!("{column}: {}", parentheses(symbol)), hint)]);
    }
}

#[test]
fn arithmetic() {
    assert_expressions(&[
        ("TEMP * 1.8 + 32", "TEMP * 1.8 + 32"),
        ("a - b - c", "a - b - c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a + b) * c", "(a + b) * c"),
        ("a / b * c // d % e", "a / b * c // d % e"),
        ("a * (b / c)", "a * (b / c)"),
        ("2 ^ 3 ^ 4", "2 ^ 3 ^ 4"),
        ("(2 ** 3) ** 4", "(2 ^ 3) ^ 4"),
        ("-x^2", "-x ^ 2"),
        ("(-x)^2", "(-x) ^ 2"),
        ("-2^2", "-2 ^ 2"),
        ("(-2)^2", "(-2) ^ 2"),
        ("2^-x", "2 ^ -x"),
        ("-2", "-2"),
        ("- 2 * x", "-2 * x"),
        ("-(2)", "-(2)"),
        ("- -x", "- -x"),
        ("- -2", "- -2"),
        ("a - -2", "a - -2"),
        ("a -2", "a - 2"),
        ("+x", "x"),
        ("+5 - +x", "5 - x"),
        ("-0.0", "-0.0"),
        ("-inf < NaN", "-inf < nan"),
        ("1e300 + .5 + 5. + 0xFF", "1e300 + 0.5 + 5.0 + 255"),
        ("-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
    ]);
    let minus_square = parse_expression("-2^2").unwrap();
    assert!(matches!(minus_square, Expr::Unary { .. }), "{minus_square:?}");
    assert_eq!(parse_expression("(-2)"), Ok(Expr::Literal(Literal::Int(-2))));
}

#[test]
fn names() {
    assert_expressions(&[
        ("Step#0/Energy", "Step#0/Energy"),
        ("data/00001/particles/position/x > 0", "data/00001/particles/position/x > 0"),
        ("/grp/U + /grp/V", "/grp/U + /grp/V"),
        ("a / b", "a / b"),
        ("a/ b", "a / b"),
        ("a /b", "a / b"),
        ("a/(b)", "a / b"),
        ("a/sqrt(b)/c", "a / sqrt(b) / c"),
        ("g/a/sqrt (b)", "g/a / sqrt(b)"),
        ("x/1e-5", "x / 1e-5"),
        ("a//b", "a // b"),
        ("2*x/y", "2 * x/y"),
        ("1/2", "1 / 2"),
        (
            r#""HDFEOS/SWATHS/IWC/Data Fields/L2gpValue" > `b ``c`"#,
            r#""HDFEOS/SWATHS/IWC/Data Fields/L2gpValue" > "b `c""#,
        ),
        (r#""say ""x""" = 'it''s'"#, r#""say ""x""" = 'it''s'"#),
        ("größe > ΔT", "größe > ΔT"),
        ("date > 5 and first = last and desc < 1", "date > 5 AND first = last AND desc < 1"),
        ("limit > 5 and x < offset and order/x = group", "limit > 5 AND x < offset AND order/x = group"),
        (r#""and" = 1"#, r#""and" = 1"#),
    ]);
    let Expr::Name(name) = parse_expression("  a/b ").unwrap() else { panic!("no name") };
    assert_eq!(name.span, Span { start: 2, end: 5 });
    assert_eq!((name.text.as_str(), name.quoted), ("a/b", false));
    // What cannot stand without quotes gets them.
    let odd = Name { text: "a b".into(), quoted: false, span: Span::default() };
    assert_eq!(odd.to_string(), "\"a b\"");
}

#[test]
fn calls() {
    assert_expressions(&[
        ("SQRT (x)", "sqrt(x)"),
        ("COUNT( * )", "count(*)"),
        ("count(distinct x)", "count(DISTINCT x)"),
        ("now()", "now()"),
        ("attr(TEMP, 'units') = 'K'", "attr(TEMP, 'units') = 'K'"),
        ("idx(z_t) % 2 = 0", "idx(z_t) % 2 = 0"),
        ("quantile(TEMP, 0.5) + max(a > 1, b)", "quantile(TEMP, 0.5) + max(a > 1, b)"),
        ("date('1999-01-01')", "date('1999-01-01')"),
    ]);
}

#[test]
fn unknown_paths_are_divided_with_the_precedence_of_division() {
    let is_known = |name: &Name| ["a", "b", "g/a"].contains(&name.text.as_str());
    for (text, spaced) in [
        ("1/a/b", "1 / a / b"),
        ("a/b^2", "a / b ^ 2"),
        ("2^a/b", "2 ^ a / b"),
        ("2*a/2/b - g/a/b", "2 * a / 2 / b - g/a / b"),
        ("-a/b", "-a / b"),
        ("a/nan", "a / nan"),
        ("a/null", "a / null"),
        ("(a/b)^2", "(a / b) ^ 2"),
        ("g/a > 0", "g/a > 0"),
        ("x/y > 0", "x/y > 0"),
        ("\"a/b\" > 0", "\"a/b\" > 0"),
    ] {
        assert_eq!(parse_expression_with(text, &is_known), parse_expression(spaced), "{text}");
    }
    assert_eq!(parse_condition_with("a/b>1", &is_known), parse_condition("a / b > 1"));
    let select = parse_select_with("SELECT a/2, a/b AS q FROM g/a", &is_known);
    assert!(select.is_err(), "a path without quotes is no source");
    let select = parse_select_with("SELECT a/2, a/b AS q FROM 'g/a'", &is_known).unwrap();
    assert_eq!(select.to_string(), "SELECT a / 2, a / b AS \"q\" FROM 'g/a'");
}

#[test]
fn queries() {
    for (text, printed) in [
        ("select * from 'pop.nc'", "SELECT * FROM 'pop.nc'"),
        ("SELECT * FROM \"s3://b/*.nc\";", "SELECT * FROM 's3://b/*.nc'"),
        ("SELECT TEMP FROM pop", "SELECT TEMP FROM 'pop'"),
        ("select a, b from 'x' cross where a > b", "SELECT a, b FROM 'x' CROSS WHERE a > b"),
        ("SELECT a, cross Cross LIMIT 1", "SELECT a, cross CROSS LIMIT 1"),
        ("SELECT cross FROM cross", "SELECT cross FROM 'cross'"),
        ("SELECT a FROM collection('c') CROSS", "SELECT a FROM collection('c') CROSS"),
        ("SELECT TEMP", "SELECT TEMP"),
        (
            "SELECT TEMP AS t, SALT*2 AS \"twice it\", limit AS offset",
            "SELECT TEMP AS \"t\", SALT * 2 AS \"twice it\", limit AS \"offset\"",
        ),
        ("SELECT DISTINCT KMT FROM 'o''b.nc'", "SELECT DISTINCT KMT FROM 'o''b.nc'"),
        (
            "SELECT z_t, avg(TEMP) FROM 'pop.nc' WHERE TEMP > -2 GROUP BY z_t, idx(time) HAVING count(*) > 10 \
             ORDER BY 2 desc nulls last, z_t ASC, a NULLS FIRST LIMIT 10 OFFSET 5",
            "SELECT z_t, avg(TEMP) FROM 'pop.nc' WHERE TEMP > -2 GROUP BY z_t, idx(time) HAVING count(*) > 10 \
             ORDER BY 2 DESC NULLS LAST, z_t, a NULLS FIRST LIMIT 10 OFFSET 5",
        ),
        ("SELECT a OFFSET 5 LIMIT 10", "SELECT a LIMIT 10 OFFSET 5"),
        ("SELECT order FROM x ORDER BY order", "SELECT order FROM 'x' ORDER BY order"),
        ("SELECT (SELECT max(a) FROM 'y') - a FROM 'x'", "SELECT (SELECT max(a) FROM 'y') - a FROM 'x'"),
    ] {
        let tree = parse_select(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(tree.to_string(), printed);
        assert_eq!(parse_select(printed), Ok(tree), "{text} printed and read again");
    }
}

#[test]
fn columns_are_named_as_written() {
    let select =
        parse_select("SELECT avg( TEMP ),\n \"a b\", x+1 AS y, g/U /* c */, 'it''s' FROM x").unwrap();
    let Projection::Items(items) = select.projection else { panic!("no items") };
    let names: Vec<_> = items.iter().map(|item| item.column_name()).collect();
    assert_eq!(names, ["avg( TEMP )", "a b", "y", "g/U", "'it''s'"]);
    assert_eq!(items[2].text, "x+1");
}

#[test]
fn the_error_shows_the_line_and_the_place() {
    let error = parse_select("SELECT TEMP\nFROM 'x.nc'\n WHERE TEMP > )").unwrap_err();
    assert_eq!(
        error.message(),
        "syntax error at line 3, column 15: expected a value, found ')'\n   WHERE TEMP > )\n                ^"
    );
    assert_eq!(error.hint_text(), Some("there is no '(' for this ')'"));
}

#[test]
fn errors_of_conditions() {
    assert_errors(
        parse_condition,
        &[
            ("", "1: expected a condition, found the end of the text", ""),
            ("  -- nothing", "13: expected a condition, found the end of the text", ""),
            ("TEMP >", "7: expected a value, found the end of the text", ""),
            (
                "(TEMP > 5",
                "10: expected an operator or ')', found the end of the text",
                "line 1, column 1 is not closed",
            ),
            (
                "TEMP > 5)",
                "9: expected an operator, AND, OR or the end of the text, found ')'",
                "there is no '('",
            ),
            (
                "TEMP SALT > 5",
                "6: expected an operator, AND, OR or the end of the text, found 'SALT'",
                "AS before",
            ),
            ("TEMP = NULL", "6: nothing is equal to NULL, less or greater", "IS NULL"),
            ("x IS None", "6: expected NULL or NOT NULL, found 'None'", "write IS NULL"),
            ("x IS NOT 5", "10: expected NULL, found '5'", ""),
            ("WHERE a > 5", "1: expected a value, found WHERE", "leave WHERE out"),
            ("SELECT a", "1: expected a value, found SELECT", "sql()"),
            ("a > 5 AND and", "11: expected a value, found AND", "write \"and\""),
            ("x IN [1, 2]", "6: unexpected character '['", "BETWEEN 1 AND 3"),
            ("x IN 5", "6: expected '(' and a list of values, found '5'", ""),
            ("x IN (SELECT a)", "7: expected a value, found SELECT", "single value"),
            ("x BETWEEN 1, 2", "12: expected AND and the upper end of BETWEEN, found ','", ""),
            (
                "a IS NULL = b",
                "11: expected an operator, AND, OR or the end of the text, found '='",
                "parentheses",
            ),
            (
                "a < b IS NULL",
                "7: expected an operator, AND, OR or the end of the text, found IS",
                "parentheses",
            ),
            ("a = NOT b", "5: expected a value, found NOT", "parentheses"),
            (
                "0 < (a < b) < c",
                "13: a chain of comparisons cannot go on behind a condition or a subquery",
                "AND",
            ),
            ("a > 5 && b", "7: unknown operator '&&'", "AND"),
            ("a =< 5", "3: unknown operator '=<'", "<="),
            ("a > 5;", "6: expected an operator, AND, OR or the end of the text, found ';'", "one query"),
            ("!(a > 5)", "1: unexpected character '!'", "NOT"),
            ("a > \u{2212}5", "5: unexpected character '\u{2212}' (U+2212)", "ASCII minus"),
            ("a = \u{2018}x\u{2019}", "5: unexpected character '\u{2018}' (U+2018)", "ASCII quote"),
            ("a \u{2265} 5", "3: unexpected character '\u{2265}' (U+2265)", ">="),
            ("a\u{200B} > 5", "2: unexpected character U+200B", "invisible"),
            ("x\u{b2} > 5", "2: unexpected character '\u{b2}'", "^2"),
            ("a = 'x", "5: string is not closed", "closing '"),
            ("a = \"x", "5: quoted name is not closed", "closing \""),
            ("\"\" = 1", "1: a quoted name must not be empty", ""),
            ("a /* b", "3: comment is not closed", "*/"),
            ("5--2 > x", "2: '--' between two values begins a comment", "- -"),
            ("np.sqrt(x) > 2", "1: 'np.sqrt' is not the name of a function", "sqrt(...)"),
            (
                "x LIKE 'a' ESCAPE '!'",
                "12: expected an operator, AND, OR or the end of the text, found 'ESCAPE'",
                "ESCAPE",
            ),
            ("count(*", "8: expected nothing else or ')', found the end of the text", "not closed"),
            ("f(a b)", "5: expected an operator, ',' or ')', found 'b'", "comma"),
            ("1_000 < x", "1: malformed number '1_000'", "1000"),
            ("x > 5m", "5: malformed number '5m'", "operator"),
            ("x > 1e999", "5: number 1e999 is beyond the range of a 64-bit float", "inf"),
            (
                "x > 170141183460469231731687303715884105728",
                "5: integer 170141183460469231731687303715884105728 does not fit into 128 bits",
                "exponent",
            ),
        ],
    );
}

#[test]
fn errors_of_queries() {
    let next = "expected one of an operator, ',', AS, FROM, CROSS, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or the \
                end of the text";
    let table = [
        ("", "1: expected SELECT, found the end of the text".to_owned(), ""),
        ("TEMP > 5", "1: expected SELECT, found 'TEMP'".into(), "SELECT ... FROM"),
        ("INSERT INTO x", "1: expected SELECT, found 'INSERT'".into(), "only reads"),
        ("EXPLAIN SELECT a", "1: expected SELECT, found 'EXPLAIN'".into(), "sieva explain"),
        ("SELECT a b FROM x", format!("10: {next}, found 'b'"), "AS before"),
        ("SELECT a, FROM x", "11: expected a value, found FROM".into(), "comma too many"),
        ("SELECT FROM x", "8: expected a value, found FROM".into(), ""),
        ("SELECT a, * FROM x", "11: expected a value, found '*'".into(), "stands alone"),
        ("SELECT a AS 'b'", "13: expected a column name, found the string 'b'".into(), "double quotes"),
        (
            "SELECT * FROM pop.nc WHERE a > 5",
            "15: expected the name of a file in quotes, or a catalog name, found pop.nc".into(),
            "FROM 'pop.nc'",
        ),
        (
            "SELECT * FROM data/*.nc",
            "15: expected the name of a file in quotes, or a catalog name, found data/*.nc".into(),
            "FROM 'data/*.nc'",
        ),
        (
            "SELECT * FROM https://x.org/a-b.nc?v=1",
            "15: expected the name of a file in quotes, or a catalog name, found https://x.org/a-b.nc?v=1".into(),
            "FROM 'https://x.org/a-b.nc?v=1'",
        ),
        (
            "SELECT * FROM (SELECT a)",
            "15: expected the name of a file in quotes, or a catalog name, found '('".into(),
            "single value",
        ),
        (
            "SELECT * FROM",
            "14: expected the name of a file in quotes, or a catalog name, found the end of the text".into(),
            "",
        ),
        (
            "SELECT * FROM 'a' JOIN 'b'",
            "19: expected one of CROSS, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or the end of the text, found 'JOIN'"
                .into(),
            "joins and windows are left to DuckDB",
        ),
        (
            "SELECT * FROM a, b",
            "16: expected one of CROSS, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or the end of the text, found ','"
                .into(),
            "left to DuckDB",
        ),
        (
            "SELECT a CROSS JOIN b",
            "16: expected one of WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or the end of the text, found 'JOIN'".into(),
            "left to DuckDB",
        ),
        (
            "SELECT * FROM 'a' WHERE a > b CROSS",
            "31: expected one of an operator, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or the end of the text, found \
             'CROSS'"
                .into(),
            "CROSS stands once, before WHERE",
        ),
        ("SELECT sum(a) OVER (b)", format!("15: {next}, found 'OVER'"), "left to DuckDB"),
        (
            "SELECT a LIMIT 5 WHERE b",
            "18: expected OFFSET or the end of the text, found WHERE".into(),
            "in the order",
        ),
        ("SELECT a LIMIT -1", "16: expected a whole number of rows, 0 or more, found '-'".into(), "LIMIT out"),
        ("SELECT a LIMIT 1.5", "16: expected a whole number of rows, 0 or more, found '1.5'".into(), ""),
        (
            "SELECT a LIMIT 18446744073709551616",
            "16: at most 18446744073709551615 rows can be counted".into(),
            "",
        ),
        ("SELECT a GROUP b", "16: expected BY behind GROUP, found 'b'".into(), "GROUP BY"),
        ("SELECT a ORDER BY b NULLS", "26: expected FIRST or LAST, found the end of the text".into(), ""),
        ("SELECT a; SELECT b", "11: expected the end of the text, found SELECT".into(), "one query"),
    ];
    for (text, message, hint) in &table {
        assert_errors(parse_select, &[(text, message, hint)]);
    }
}

#[test]
fn nesting_is_limited_and_length_is_not() {
    let too_deep = "nested deeper than 200 levels";
    for (open, inner, close) in [
        ("(", "a", ")"),
        ("f(", "a", ")"),
        ("- ", "a", ""),
        ("NOT ", "a", ""),
        ("~", "a", ""),
        ("2 ^ ", "a", ""),
        ("a + ", "a", ""),
        ("a / ", "a", ""),
        ("a < (", "a", ")"),
        ("x IN (", "a", ")"),
        ("(SELECT ", "a", ")"),
        ("(a OR (b AND ", "c", "))"),
        ("x BETWEEN 1 AND (", "a", ")"),
    ] {
        let nested = |levels: usize| format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
        let fine = parse_condition(&nested(45)).unwrap_or_else(|e| panic!("{open}: {e}"));
        assert_eq!(parse_condition(&fine.to_string()), Ok(fine), "{open}");
        for levels in [201, 1000, 100_000] {
            let error = parse_condition(&nested(levels)).expect_err(open);
            assert!(error.message().contains(too_deep), "{open}: {error}");
        }
    }
    for (word, inner) in [(" AND ", "a > 1"), (" OR ", "a > 1"), (" & ", "(a > 1)"), (" < ", "a")] {
        let long = vec![inner; 100_000].join(word);
        let tree = parse_condition(&long).unwrap_or_else(|e| panic!("{word}: {e}"));
        let (Expr::And(parts) | Expr::Or(parts)) = tree else { panic!("{word}: no junction") };
        assert!(parts.len() >= 99_999, "{word}: {}", parts.len());
    }
    let list = parse_condition(&format!("x IN ({})", vec!["1"; 100_000].join(","))).unwrap();
    assert!(matches!(list, Expr::InList { list, .. } if list.len() == 100_000));
}

#[test]
fn left_chains_count_as_nesting_also_inside_of_each_other() {
    let chain = |inner: String| format!("({inner}{})", " + a".repeat(100));
    let twice = chain(chain("a".into()));
    assert!(parse_expression(&chain("a".into())).is_ok());
    let error = parse_expression(&twice).unwrap_err();
    assert!(error.message().contains("nested deeper than 200 levels"), "{error}");
}

#[test]
fn chained_comparisons_do_not_double_at_each_level() {
    let nested = (0..150).fold("a".to_owned(), |inner, _| format!("0 < f({inner}) < 1"));
    assert!(parse_condition(&nested).is_err());
}

#[test]
fn paths_with_spaces_around_the_slash_are_divisions() {
    let Ok(Expr::Binary { op, .. }) = parse_expression("a / b") else { panic!("no division") };
    assert_eq!(op, BinaryOp::Div);
}

#[test]
fn a_collection_is_named_behind_from() {
    let select = parse_select("SELECT flux FROM collection('a b') WHERE flux > 1").unwrap();
    assert_eq!((select.collection.as_deref(), select.from.as_deref()), (Some("a b"), None));
    assert_eq!(parse_select(&select.to_string()).unwrap(), select);
    let file = parse_select("SELECT flux FROM collection WHERE flux > 1").unwrap();
    assert_eq!((file.collection.as_deref(), file.from.as_deref()), (None, Some("collection")));
    let e = parse_select("SELECT flux FROM collection(5)").unwrap_err();
    assert!(e.message().contains("the name of a collection in quotes"), "{}", e.message());
    assert!(parse_select("SELECT flux FROM collection('a'").is_err());
}

#[test]
fn what_a_text_may_have_is_limited() {
    let of = |what: &str, n: usize| vec![what; n].join(", ");
    let refused = |text: String| {
        let e = parse_select(&text).expect_err("too much");
        assert_eq!(e.kind(), ErrorKind::Syntax);
        e.message().to_owned()
    };
    assert!(parse_select(&format!("SELECT {}", of("max(a)", 10_000))).is_ok());
    assert!(refused(format!("SELECT {}", of("max(a)", 10_001))).contains("more than 10000 columns"));
    let keys = |n| format!("SELECT max(b) GROUP BY {}", of("a", n));
    assert!(parse_select(&keys(256)).is_ok());
    assert!(refused(keys(257)).contains("more than 256 keys of GROUP BY"));
    let order = |n| format!("SELECT b ORDER BY {}", of("a DESC", n));
    assert!(parse_select(&order(256)).is_ok());
    assert!(refused(order(257)).contains("more than 256 keys of ORDER BY"));
    let long = format!("SELECT a WHERE b = '{}'", "x".repeat(MAX_TEXT));
    assert!(refused(long).starts_with("the text has 4194325 bytes; a query has 4194304 at most"));
    let name = "n".repeat(MAX_TEXT - 20);
    assert!(parse_select(&format!("SELECT {name}")).is_ok());
}
