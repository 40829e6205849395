//! What FoundationDB's error codes mean to a caller of ours.
//!
//! The rule behind the table: of a commit it is said that nothing was applied only where FoundationDB promises that.
//! Everything that can happen between sending a commit and its answer is [`StoreError::CommitUnknown`], and a code that this
//! release does not know is taken for such a case.

use crate::StoreError;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Something that changes nothing.
    Reading,
    /// Waiting for a change.
    Watching,
    /// A commit of so many bytes.
    Committing {
        /// As [`crate::CommitRequest::bytes`] counts them.
        bytes: usize,
    },
}

/// `transaction_too_old`: what a client must say of a transaction whose age it judges itself.
pub(super) const TOO_OLD: i32 = 1007;

/// The error that FoundationDB's `code` is to our callers; `message` are its words.
pub(super) fn failed(doing: Doing, code: i32, message: &str) -> StoreError {
    let words = || format!("FoundationDB says: {message} ({code})").into();
    match (code, doing) {
        (1020, _) => StoreError::Conflict,
        (TOO_OLD, _) => StoreError::TooOld,
        (1036, _) => StoreError::Unreadable,
        (1032, _) => StoreError::TooManyWatches,
        (2004, _) => StoreError::KeyReserved,
        (2005, _) => StoreError::RangeInverted,
        (2101, Doing::Committing { bytes }) => StoreError::TransactionTooLarge { bytes },
        // Not committed for sure, and worth another try: a version from the future, a storage server that lags, a locked
        // database, a proxy without memory, throttling of several kinds.
        (1009 | 1037 | 1038 | 1042 | 1051 | 1078 | 1213 | 1223 | 1235 | 1242, _) => StoreError::Unavailable(words()),
        // What the cluster read from its disks is damaged.
        (1520 | 1522, Doing::Reading | Doing::Watching) => StoreError::Corrupt(words()),
        // The client refuses what it was asked, or is not what it should be: 2xxx by FoundationDB's own rule. Nothing was sent.
        (2000..=2999, _) => StoreError::Refused(words()),
        // 1021, 1039, time limits, cancellations, lost connections, and whatever else.
        (_, Doing::Committing { .. }) => StoreError::CommitUnknown,
        (_, Doing::Reading | Doing::Watching) => StoreError::Unavailable(words()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Retry;

    const COMMITTING: Doing = Doing::Committing { bytes: 12_000_000 };

    fn retry(doing: Doing, code: i32) -> Retry {
        failed(doing, code, "words").retry()
    }

    #[test]
    fn what_was_not_applied_is_run_again() {
        for code in [1007, 1009, 1020, 1037, 1038, 1042, 1051, 1078, 1213, 1223, 1235, 1242] {
            assert_eq!(retry(COMMITTING, code), Retry::Again, "{code}");
            assert_eq!(retry(Doing::Reading, code), Retry::Again, "{code}");
        }
        assert_eq!(failed(COMMITTING, 1020, ""), StoreError::Conflict);
        assert_eq!(failed(COMMITTING, TOO_OLD, ""), StoreError::TooOld);
    }

    #[test]
    fn what_may_have_been_applied_is_looked_for() {
        // commit_unknown_result, cluster_version_changed, then what can come between a commit and its answer.
        for code in [
            1021, 1039, 1004, 1025, 1026, 1030, 1031, 1100, 1101, 1102, 1510, 4000, 4100,
        ] {
            assert_eq!(failed(COMMITTING, code, ""), StoreError::CommitUnknown, "{code}");
            assert_eq!(retry(COMMITTING, code), Retry::FindOut, "{code}");
            assert_eq!(retry(Doing::Watching, code), Retry::Again, "{code}");
        }
    }

    #[test]
    fn a_code_of_a_later_release_never_counts_as_not_applied() {
        let known = [
            1007, 1009, 1020, 1032, 1036, 1037, 1038, 1042, 1051, 1078, 1213, 1223, 1235, 1242,
        ];
        for code in (1000..2000).chain(3000..5000).filter(|code| !known.contains(code)) {
            assert_eq!(failed(COMMITTING, code, ""), StoreError::CommitUnknown, "{code}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_not_tried_again() {
        for code in [1032, 1036, 2000, 2004, 2005, 2101, 2102, 2103, 2203] {
            assert_eq!(retry(COMMITTING, code), Retry::Never, "{code}");
        }
        assert_eq!(
            failed(COMMITTING, 2101, ""),
            StoreError::TransactionTooLarge { bytes: 12_000_000 }
        );
        let refused = failed(Doing::Reading, 2102, "Key length exceeds limit").to_string();
        assert!(refused.contains("Key length exceeds limit (2102)"), "{refused}");
    }
}
