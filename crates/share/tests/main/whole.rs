//! The whole way: what is asked, made, fetched, taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva::ErrorKind;
use sieva_share::{Asking, Config, FollowOptions, Follower, Group, GroupOptions, Producer};

use crate::memory::Memory;
use crate::world::{LARGE, MEAN, Scratch, ask, files, follow, keys, options, produce};

fn group(scratch: &Scratch) -> Group {
    let group =
        Group::create(&scratch.0.join("group").display().to_string(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    group
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

#[test]
fn what_two_ask_for_alike_is_made_once_and_each_gets_it() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    scratch.step("a.nc", 1000);
    for user in ["ada", "bob"] {
        group.join(user).unwrap();
        ask(&group, user, "mean", MEAN).unwrap();
    }
    // The same question in other words.
    ask(&group, "bob", "large", "SELECT v WHERE NOT (v < 1990)").unwrap();
    ask(&group, "ada", "large", LARGE).unwrap();
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.steps, done.entries, done.failed, done.objects), (1, 4, 0, 2));
    assert_eq!(keys(&**group.objects(), "data/").len(), 2);
    let large = "v\r\n1990\r\n1991\r\n1992\r\n1993\r\n1994\r\n1995\r\n1996\r\n1997\r\n1998\r\n1999\r\n";
    for user in ["ada", "bob"] {
        let followed = follow(&group, user, &scratch.folder(user)).unwrap();
        assert_eq!((followed.files.len(), followed.troubles.len()), (2, 0));
        let found = files(&scratch.folder(user));
        let expected = texts(&[("mean/a.csv", "mean,n\r\n1499.5,1000\r\n"), ("large/a.csv", large)]);
        let plain = |files: BTreeMap<String, Vec<u8>>| -> BTreeMap<String, String> {
            files.into_iter().map(|(k, v)| (k, String::from_utf8(v).unwrap().replace("\r\n", "\n"))).collect()
        };
        assert_eq!(plain(found), plain(expected));
        // A second pass has nothing to do.
        assert_eq!(follow(&group, user, &scratch.folder(user)).unwrap().files.len(), 0);
    }
    // Taken by all: nobody needs it any more.
    assert_eq!(produce(&group, "model").unwrap().deleted, 2);
    assert_eq!(keys(&**group.objects(), "data/"), [""; 0]);
    // And it is not made again, until there is a new step.
    scratch.step("b.nc", 5000);
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.steps, done.entries, done.objects), (1, 4, 2));
}

#[test]
fn a_step_that_changes_replaces_its_answer_and_only_new_leaves_old_steps_out() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    scratch.step("a.nc", 0);
    group.join("ada").unwrap();
    group.ask("ada", "new", &Asking { sql: MEAN, format: "csv", only_new: true }).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 0);
    scratch.step("b.nc", 10);
    assert_eq!(produce(&group, "model").unwrap().entries, 1);
    // Changed before anybody took it: the first answer is gone, and one is there.
    scratch.step("b.nc", 110);
    assert_eq!(produce(&group, "model").unwrap().entries, 1);
    produce(&group, "model").unwrap();
    assert_eq!(keys(&**group.objects(), "data/").len(), 1);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    let found = files(&scratch.folder("ada"));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["new/b.csv"]);
    assert!(String::from_utf8_lossy(&found["new/b.csv"]).contains("609.5"));
    scratch.step("a.nc", 1);
    produce(&group, "model").unwrap();
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(files(&scratch.folder("ada")).len(), 2);
}

#[test]
fn a_question_that_cannot_be_answered_says_so_to_who_asked_and_to_nobody_else() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    scratch.step("a.nc", 0);
    std::fs::write(scratch.0.join("steps/b.txt"), "no data").unwrap();
    for user in ["ada", "bob"] {
        group.join(user).unwrap();
    }
    ask(&group, "ada", "wrong", "SELECT w WHERE w > 3").unwrap();
    let elsewhere =
        format!("SELECT v WHERE v > (SELECT max(v) FROM '{}/steps/../secret.nc')", scratch.0.display());
    std::fs::write(scratch.0.join("secret.nc"), crate::world::classic(0, 5)).unwrap();
    ask(&group, "ada", "secret", &elsewhere).unwrap();
    ask(&group, "bob", "mean", MEAN).unwrap();
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (3, 2, 1));
    let [trouble] = &done.troubles[..] else { panic!("{:?}", done.troubles) };
    assert_eq!((&*trouble.step, trouble.error.kind()), ("b.txt", ErrorKind::UnknownFormat));
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(followed.files.len(), 0);
    let codes: Vec<&str> = followed.failures.iter().map(|e| &*e.failure.as_ref().unwrap().code).collect();
    assert_eq!(codes, ["permission-denied", "unknown-array"]);
    assert_eq!(follow(&group, "bob", &scratch.folder("bob")).unwrap().files.len(), 1);
    // Told once.
    assert_eq!(follow(&group, "ada", &scratch.folder("ada")).unwrap().failures.len(), 0);
}

#[test]
fn who_leaves_or_withdraws_leaves_nothing_behind_and_may_come_back() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    scratch.step("a.nc", 0);
    group.join("ada").unwrap();
    ask(&group, "ada", "mean", MEAN).unwrap();
    ask(&group, "ada", "large", LARGE).unwrap();
    produce(&group, "model").unwrap();
    group.withdraw("ada", "large").unwrap();
    assert_eq!(group.withdraw("ada", "large").unwrap_err().kind(), ErrorKind::FileNotFound);
    assert_eq!(produce(&group, "model").unwrap().deleted, 1);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(files(&scratch.folder("ada")).len(), 1);
    group.leave("ada").unwrap();
    produce(&group, "model").unwrap();
    let left = keys(&**group.objects(), "");
    assert_eq!(left, ["group/group.json", "group/producers/model.json", "group/schemas/model.json"]);
    let late = Follower::new(&group, "ada", "mean", scratch.folder("ada").join("mean"));
    assert_eq!(late.err().unwrap().kind(), ErrorKind::FileNotFound);
    // With numbers of answers that begin anew.
    group.join("ada").unwrap();
    ask(&group, "ada", "mean", LARGE).unwrap();
    produce(&group, "model").unwrap();
    assert_eq!(follow(&group, "ada", &scratch.folder("ada")).unwrap().files.len(), 1);
    assert!(files(&scratch.folder("ada"))["mean/a.csv"].starts_with(b"v"));
}

#[test]
fn damage_on_the_way_is_noticed_and_fetched_again() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("damage"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 0);
    group.join("ada").unwrap();
    ask(&group, "ada", "mean", MEAN).unwrap();
    produce(&group, "model").unwrap();
    let key = keys(&*memory, "data/").remove(0);
    memory.damage(&key);
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    let [trouble] = &followed.troubles[..] else { panic!("{:?}", followed.troubles) };
    assert_eq!(trouble.kind(), ErrorKind::CorruptFile);
    assert_eq!(files(&scratch.folder("ada")).len(), 0);
    memory.damage(&key);
    assert_eq!(follow(&group, "ada", &scratch.folder("ada")).unwrap().files.len(), 1);
}

#[test]
fn answers_of_other_files_and_producers_have_names_of_their_own() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    ask(&group, "ada", "mean", MEAN).unwrap();
    scratch.step("run.nc", 0);
    scratch.step("run.h5", 10);
    scratch.step("run 1.nc", 20);
    let elsewhere = scratch.0.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("run.nc"), crate::world::classic(30, 1000)).unwrap();
    Producer::register(&group, "other", &[elsewhere.display().to_string()]).unwrap();
    let pass = || {
        produce(&group, "model").unwrap();
        produce(&group, "other").unwrap();
        follow(&group, "ada", &scratch.folder("ada")).unwrap();
        let means = files(&scratch.folder("ada")).into_iter().map(|(name, bytes)| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            (name, text.split_whitespace().nth(1).unwrap().to_owned())
        });
        means.collect::<Vec<_>>()
    };
    let first = pass();
    let mut means: Vec<&str> = first.iter().map(|(_, mean)| &**mean).collect();
    means.sort_unstable();
    assert_eq!(means, ["499.5,1000", "509.5,1000", "519.5,1000", "529.5,1000"]);
    // Each is replaced by its own.
    scratch.step("run 1.nc", 120);
    std::fs::write(elsewhere.join("run.nc"), crate::world::classic(130, 1000)).unwrap();
    let second = pass();
    let names = |all: &[(String, String)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    let mut means: Vec<&str> = second.iter().map(|(_, mean)| &**mean).collect();
    means.sort_unstable();
    assert_eq!(means, ["499.5,1000", "509.5,1000", "619.5,1000", "629.5,1000"]);
}

#[test]
fn names_formats_questions_and_places_that_cannot_be_are_told() {
    let scratch = Scratch::new();
    let place = scratch.0.join("group").display().to_string();
    assert_eq!(Group::open(&place, None).unwrap_err().kind(), ErrorKind::FileNotFound);
    let group = group(&scratch);
    assert_eq!(group.join("a/b").unwrap_err().kind(), ErrorKind::InvalidValue);
    let early = Follower::new(&group, "ada", "mean", scratch.folder("ada"));
    assert_eq!(early.err().unwrap().kind(), ErrorKind::FileNotFound);
    let asking = |sql, format| group.ask("ada", "x", &Asking { sql, format, only_new: false }).unwrap_err();
    assert_eq!(asking("SELECT", "csv").kind(), ErrorKind::Syntax);
    assert_eq!(asking("SELECT v FROM 'a.nc'", "csv").kind(), ErrorKind::Syntax);
    assert_eq!(asking(MEAN, "table").kind(), ErrorKind::InvalidValue);
    assert_eq!(Producer::open(&group, "none").err().unwrap().kind(), ErrorKind::FileNotFound);
    let other = GroupOptions { expires: Some(1), ..Default::default() };
    assert_eq!(Group::create(&place, &other).unwrap_err().kind(), ErrorKind::InvalidValue);
    Group::create(&place, &GroupOptions::default()).unwrap();
    // A folder is for one ask.
    scratch.step("a.nc", 0);
    for name in ["mean", "other"] {
        ask(&group, "ada", name, MEAN).unwrap();
    }
    produce(&group, "model").unwrap();
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    let e = Follower::new(&group, "ada", "other", scratch.folder("ada").join("mean")).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::InvalidValue);
    assert_eq!(Follower::new(&group, "ada", "none", &place).err().unwrap().kind(), ErrorKind::FileNotFound);
}

#[test]
fn what_nobody_takes_expires() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("expires"));
    let group =
        Group::create_in(memory.clone(), &GroupOptions { expires: Some(0), ..Default::default() }).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 0);
    group.join("ada").unwrap();
    ask(&group, "ada", "mean", MEAN).unwrap();
    assert_eq!(produce(&group, "model").unwrap().objects, 1);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.deleted, done.objects), (1, 0));
    let followed = Follower::new(&group, "ada", "mean", scratch.folder("ada")).unwrap();
    assert_eq!(followed.pass(&FollowOptions::default()).unwrap().files.len(), 0);
}

#[test]
fn a_plan_says_who_gets_what_and_writes_nothing() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("plan"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    let producer = Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 0);
    for user in ["ada", "bob"] {
        group.join(user).unwrap();
        ask(&group, user, "mean", MEAN).unwrap();
    }
    ask(&group, "bob", "wrong", "SELECT w").unwrap();
    std::fs::write(scratch.0.join("steps/b.txt"), "no data").unwrap();
    let before = memory.contents();
    let planned = producer.plan(&options()).unwrap();
    assert_eq!(memory.contents(), before);
    let [step, broken] = &planned[..] else { panic!("{planned:?}") };
    assert_eq!((broken.units.len(), broken.refused.len()), (0, 3));
    let [unit] = &step.units[..] else { panic!("{step:?}") };
    let who = |user: &str, ask: &str| (user.to_owned(), ask.to_owned());
    assert_eq!(unit.given, [("csv", vec![who("ada", "mean"), who("bob", "mean")])]);
    assert_eq!(unit.price.rows.high, 1);
    assert!(unit.price.bytes_read.high >= 4000);
    assert_eq!((&*step.refused[0].0, step.refused[0].2.kind()), ("bob", ErrorKind::UnknownArray));
}

#[test]
fn a_value_that_one_asks_for_and_another_compares_with_is_one_plan_of_an_earlier_scan() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("stages"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    let producer = Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 1000);
    // DR6 of two, DR3 of one, the same in two formats.
    ask(&group, "ada", "above", "SELECT v WHERE v > (SELECT avg(v) AS mean) AND v < 1502").unwrap();
    ask(&group, "bob", "above", "SELECT v WHERE v < 1502 AND v > (SELECT avg(v) AS mean)").unwrap();
    ask(&group, "cyd", "mean", "SELECT avg(v) AS mean").unwrap();
    let json = Asking { sql: "SELECT avg(v) AS mean", format: "json", only_new: false };
    group.ask("dan", "mean", &json).unwrap();
    let planned = producer.plan(&options()).unwrap();
    let stages: Vec<(usize, usize)> = planned[0].units.iter().map(|u| (u.stage, u.given.len())).collect();
    assert_eq!(stages, [(0, 2), (1, 1)]);
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (4, 0, 3));
    for user in ["ada", "bob"] {
        follow(&group, user, &scratch.folder(user)).unwrap();
        let text = String::from_utf8_lossy(&files(&scratch.folder(user))["above/a.csv"]).into_owned();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["v", "1500", "1501"]);
    }
}

#[test]
fn documents_ask_and_tell() {
    let scratch = Scratch::new();
    let group = group(&scratch);
    scratch.step("a.nc", 0);
    let reader = r#"<adios-config>
        <rd type="1" name="v"/> <rd type="4" name="v" dimension="x" start="2" end="5"/>
        <rd type="6" name="v" op="&gt;=" function="max"/> <rd type="1" name="v"/>
    </adios-config>"#;
    let reader = Config::from_xml(reader).unwrap();
    let e = group.ask_all("ada", &reader, "csv", false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnknownArray);
    produce(&group, "model").unwrap();
    let writer = group.document("model").unwrap();
    let [variables] = &writer.groups[..] else { panic!("{writer:?}") };
    let [v] = &variables.variables[..] else { panic!("{variables:?}") };
    assert_eq!(
        (&*v.name, v.value_type.as_deref(), &v.dimensions[..]),
        ("v", Some("integer"), &["x".to_owned()][..])
    );
    assert_eq!(Config::from_xml(&writer.to_xml().unwrap()).unwrap(), writer);
    let asks = group.ask_all("ada", &reader, "csv", false).unwrap();
    let names: Vec<&str> = asks.iter().map(|a| &*a.name).collect();
    assert_eq!(names, ["max-v", "values-v", "values-v-2", "max-v-2"]);
    assert_eq!(produce(&group, "model").unwrap().objects, 3);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    let found = files(&scratch.folder("ada"));
    let numbers = |name: &str| -> Vec<String> {
        let text = String::from_utf8_lossy(&found[name]).into_owned();
        text.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(numbers("values-v/a.csv"), ["2", "3", "4"]);
    assert_eq!(numbers("values-v-2/a.csv"), ["999"]);
    assert_eq!(numbers("max-v/a.csv"), ["999"]);
    let code =
        Config::from_xml(r#"<adios-config><rd type="8" name="v" cod="return 1"/></adios-config>"#).unwrap();
    assert_eq!(group.ask_all("bob", &code, "csv", false).unwrap_err().kind(), ErrorKind::Syntax);
    assert_eq!(group.asks("bob").unwrap(), []);
}

#[test]
fn files_of_a_format_that_is_not_asked_any_more_are_removed_unless_somebody_changed_them() {
    let scratch = Scratch::new();
    let group = Group::create_in(Arc::new(Memory::new("formats")), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    let folder = scratch.folder("ada");
    let kept = |format: &str| -> Vec<String> {
        group.ask("ada", "k", &Asking { sql: MEAN, format, only_new: false }).unwrap();
        produce(&group, "model").unwrap();
        let follower = Follower::new(&group, "ada", "k", &folder).unwrap();
        assert!(follower.pass(&FollowOptions::default()).unwrap().troubles.is_empty());
        files(&folder).into_keys().filter(|name| !name.starts_with('.')).collect()
    };
    for name in ["a.nc", "b.nc"] {
        scratch.step(name, 0);
    }
    assert_eq!(kept("csv"), ["a.csv", "b.csv"]);
    std::fs::write(folder.join("b.csv"), "mine").unwrap();
    std::fs::write(folder.join("own.csv"), "mine").unwrap();
    assert_eq!(kept("json"), ["a.json", "b.csv", "b.json", "own.csv"]);
    assert_eq!(std::fs::read(folder.join("b.csv")).unwrap(), b"mine");
    // A link in its place is none of the folder's files.
    std::fs::rename(folder.join("a.json"), folder.join("moved")).unwrap();
    std::os::unix::fs::symlink(folder.join("moved"), folder.join("a.json")).unwrap();
    assert_eq!(kept("arrow"), ["a.arrow", "a.json", "b.arrow", "b.csv", "moved", "own.csv"]);
    // Asked by the same format again, one is there for each file.
    std::fs::remove_file(folder.join("b.csv")).unwrap();
    assert_eq!(kept("csv"), ["a.csv", "a.json", "b.csv", "moved", "own.csv"]);
}
