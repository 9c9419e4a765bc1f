//! Documents of producers and consumers, XML and TOML of any text: a document or an error, and it comes back from both forms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_reduce::forms::Config;

fuzz_target!(|text: &str| {
    for read in [Config::from_xml, Config::from_toml] {
        match read(text) {
            Ok(config) => {
                // What one form cannot have is an error of writing, not another document.
                if let Ok(toml) = config.to_toml() {
                    assert_eq!(Config::from_toml(&toml).expect("what was written"), config);
                }
                if let Ok(xml) = config.to_xml() {
                    assert_eq!(Config::from_xml(&xml).expect("what was written"), config);
                }
                for reduction in config.asked() {
                    let dims = |_: &str| Ok(vec!["t".to_owned(), "x".to_owned()]);
                    if let Ok(sql) = reduction.to_sql(&dims) {
                        let parsed = sieva_query::parse::parse_select(&sql);
                        assert!(parsed.is_ok() || reduction.variable().is_none(), "{sql}: {parsed:?}");
                    }
                }
            }
            Err(e) => check_error(&e),
        }
    }
});
