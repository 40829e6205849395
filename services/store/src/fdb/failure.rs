//! Maps FoundationDB's error codes to [`StoreError`].
//!
//! The rule of the mapping: a commit counts as not applied only if FoundationDB guarantees it. Everything that can
//! happen between sending a commit and its answer is [`StoreError::CommitUnknown`], and so is a code that this release
//! does not know.

use crate::StoreError;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// An operation that changes nothing.
    Reading,
    /// Waiting for a change.
    Watching,
    /// A commit of `bytes` bytes.
    Committing {
        /// Size as counted by [`crate::CommitRequest::bytes`].
        bytes: usize,
    },
}

/// `transaction_too_old`: the code that a client itself must return for a transaction that it considers too old.
pub(super) const TOO_OLD: i32 = 1007;

/// The error for FoundationDB's `code`; `message` is its text.
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
        // Certainly not committed, and worth a retry: a version from the future, a storage server that lags, a locked
        // database, a proxy without memory, throttling of several kinds.
        (1009 | 1037 | 1038 | 1042 | 1051 | 1078 | 1213 | 1223 | 1235 | 1242, _) => StoreError::Unavailable(words()),
        // Data that the cluster read from its disks is corrupt.
        (1520 | 1522, Doing::Reading | Doing::Watching) => StoreError::Corrupt(words()),
        // The client rejects the request, or is misconfigured: 2xxx by FoundationDB's own rule. Nothing was sent.
        (2000..=2999, _) => StoreError::Refused(words()),
        // 1021, 1039, time limits, cancellations, lost connections, and all others.
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
    fn errors_without_effect_are_retried() {
        for code in [1007, 1009, 1020, 1037, 1038, 1042, 1051, 1078, 1213, 1223, 1235, 1242] {
            assert_eq!(retry(COMMITTING, code), Retry::Again, "{code}");
            assert_eq!(retry(Doing::Reading, code), Retry::Again, "{code}");
        }
        assert_eq!(failed(COMMITTING, 1020, ""), StoreError::Conflict);
        assert_eq!(failed(COMMITTING, TOO_OLD, ""), StoreError::TooOld);
    }

    #[test]
    fn errors_with_unknown_effect_are_resolved_first() {
        // commit_unknown_result, cluster_version_changed, then the codes possible between a commit and its answer.
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
    fn permanent_errors_are_not_retried() {
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
