//! Panics of behaviour as a process reports them, with its panic hook. A test binary of its own, since a process has one
//! hook.

use std::panic::catch_unwind;

use annals_node::{
    PanicPolicy,
    panics::{message, report_places},
};

#[test]
fn a_panic_is_reported_with_its_place_and_that_of_a_core_goes_on() {
    report_places();
    let line = line!() + 1;
    let panicked = PanicPolicy::Report.run(|| panic!("a defect in {}", "a game"));
    let here = format!("a defect in a game, at {}:{line}:", file!());
    let reported = panicked.expect_err("it panicked").message;
    assert!(reported.starts_with(&here), "{reported}");

    // Another one inside, as when an entity is created in a method.
    let outer = PanicPolicy::Report.run(|| {
        let inner = PanicPolicy::Report.run(|| panic!("inner"));
        panic!("outer after {}", inner.expect_err("it panicked").message)
    });
    let reported = outer.expect_err("it panicked").message;
    assert!(reported.starts_with("outer after inner, at "), "{reported}");

    assert_eq!(PanicPolicy::Report.run(|| 7).ok(), Some(7));

    for of_core in [
        || panic!("invariant: it never breaks"),
        || unreachable!("invariant: it never breaks"),
        || assert_eq!(1, 2, "invariant: it never breaks"),
    ] as [fn(); 3]
    {
        let unwound = catch_unwind(|| PanicPolicy::Report.run(|| PanicPolicy::Report.run(of_core)));
        let payload = unwound.expect_err("it leaves both");
        assert!(message(payload.as_ref()).contains("it never breaks"));
    }
    let unwound = catch_unwind(|| PanicPolicy::Propagate.run(|| panic!("a test sees it")));
    assert_eq!(message(unwound.expect_err("it leaves").as_ref()), "a test sees it");
}
