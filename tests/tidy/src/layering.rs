//! Dependencies between crates point one way. The allowed dependencies are listed here, crate by crate, as
//! ARCHITECTURE.md describes them.

use cargo_metadata::{DependencyKind, Metadata};

use crate::Violation;

/// The kind of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// A core or its data; no clock, socket, thread, file or randomness.
    Pure,
    /// Does I/O.
    Shell,
    /// Tests and benches; no crate depends on it.
    Harness,
}

/// A crate and its allowed dependencies.
struct CrateRules {
    name: &'static str,
    nature: Nature,
    /// Crates of the workspace that it may depend on; harnesses may depend on all but the command line.
    knows: &'static [&'static [&'static str]],
}

const fn pure(name: &'static str, knows: &'static [&'static [&'static str]]) -> CrateRules {
    CrateRules {
        name,
        nature: Nature::Pure,
        knows,
    }
}

const fn shell(name: &'static str, knows: &'static [&'static [&'static str]]) -> CrateRules {
    CrateRules {
        name,
        nature: Nature::Shell,
        knows,
    }
}

const fn harness(name: &'static str) -> CrateRules {
    CrateRules {
        name,
        nature: Nature::Harness,
        knows: &[],
    }
}

/// No crate depends on it.
const COMMAND_LINE: &str = "annals";

/// The crates of the schema layer.
const SCHEMA: &[&str] = &[
    "annals-ids",
    "annals-proof",
    "annals-def",
    "annals-event",
    "annals-personal",
    "annals-wire",
];

/// Conclusions from the ledger's entries, and their exchange format; not part of a server.
const EVIDENCE: &[&str] = &["annals-evidence"];

/// Tools for authors of definitions; not part of a server.
const AUTHORING: &[&str] = &["annals-authoring"];

/// What all cores share.
const NODE: &[&str] = &["annals-node"];

/// The trait of the store.
const STORE: &[&str] = &["annals-store"];

/// The cores, and the libraries they consist of.
const CORES: &[&str] = &[
    "annals-space",
    "annals-cell",
    "annals-base",
    "annals-login",
    "annals-director",
    "annals-db",
];

/// All crates. `schema` depends on nothing above it; cores depend on `schema` and `node`, never on each other, with two
/// exceptions: the cell core uses the spatial index, and the cores that keep their state in the store use its trait.
const CRATES: &[CrateRules] = &[
    pure("annals-ids", &[]),
    pure("annals-proof", &[&["annals-ids"]]),
    pure("annals-def", &[&["annals-ids"]]),
    pure("annals-authoring", &[&["annals-ids", "annals-def"]]),
    pure("annals-personal", &[&["annals-ids"]]),
    pure("annals-event", &[&["annals-ids", "annals-proof", "annals-def"]]),
    pure(
        "annals-evidence",
        &[&["annals-ids", "annals-proof", "annals-def", "annals-event"]],
    ),
    pure("annals-wire", &[&["annals-ids", "annals-def", "annals-event"]]),
    pure("annals-node", &[SCHEMA]),
    pure("annals-space", &[SCHEMA, NODE]),
    pure("annals-cell", &[SCHEMA, NODE, &["annals-space"]]),
    pure("annals-base", &[SCHEMA, NODE]),
    pure("annals-login", &[SCHEMA, NODE]),
    pure("annals-director", &[SCHEMA, NODE, STORE]),
    pure("annals-db", &[SCHEMA, NODE, STORE]),
    shell("annals-store", &[SCHEMA]),
    shell("annals-audit", &[SCHEMA, EVIDENCE, STORE, CORES, &["annals-host"]]),
    shell(
        "annals-console",
        &[SCHEMA, NODE, EVIDENCE, STORE, CORES, &["annals-audit", "annals-host"]],
    ),
    // What an outsider needs to check evidence, without I/O runtime.
    shell("annals-verify", &[&["annals-ids", "annals-proof"], EVIDENCE]),
    shell("annals-data", &[&["annals-def"]]),
    shell("annals-client", &[SCHEMA]),
    shell("annals-client-c", &[SCHEMA, &["annals-client"]]),
    shell("annals-host", &[SCHEMA, NODE, STORE, CORES]),
    // Bots play worlds with the sample's puppets, and compute the required duration.
    shell(
        "annals-bots",
        &[
            SCHEMA,
            STORE,
            &["annals-director", "annals-db"],
            &["annals-audit", "annals-client", "annals-host", "annals-sample"],
        ],
    ),
    shell(
        COMMAND_LINE,
        &[
            SCHEMA,
            AUTHORING,
            NODE,
            STORE,
            CORES,
            EVIDENCE,
            &[
                "annals-audit",
                "annals-bots",
                "annals-client",
                "annals-console",
                "annals-data",
                "annals-host",
                // For its man page.
                "annals-verify",
            ],
        ],
    ),
    // All that a game outside the repository needs, and owners and clients for its tests.
    shell(
        "annals-game",
        &[SCHEMA, NODE, STORE, CORES, &["annals-client", "annals-host"]],
    ),
    // A game depends on schema and node, and builds the services' binaries with itself inside.
    shell("annals-sample", &[SCHEMA, NODE, &["annals-host"]]),
    harness("annals-model"),
    harness("annals-sim"),
    harness("annals-realm"),
    harness("annals-reference"),
    harness("annals-chaos"),
    harness("annals-compat"),
    harness("annals-bench"),
    harness("annals-fuzz"),
    harness("annals-tidy"),
];

/// External crates that pure crates may use: libraries that only compute. Review a crate for I/O before adding it.
const COMPUTES: &[&str] = &[
    "async-recursion",
    "base64ct",
    "bytes",
    "chacha20poly1305",
    "crc32fast",
    "ed25519-dalek",
    "encoding_rs",
    "humantime",
    "maud",
    "prost",
    "quick-xml",
    "serde_json",
    "sha2",
    "thiserror",
];

/// A crate of the workspace and its dependencies, without those for tests.
#[derive(Debug, Clone)]
pub struct Crate {
    pub name: String,
    /// Its folder, relative to the root.
    pub folder: String,
    /// The names of its normal and build dependencies.
    pub needs: Vec<String>,
}

/// The crates of the workspace.
///
/// # Panics
/// If cargo fails.
pub fn crates() -> Vec<Crate> {
    let root = crate::repository::root();
    let metadata: Metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--locked".to_owned(), "--offline".to_owned()])
        .exec()
        .expect("cargo metadata answers");
    let describe = |package: &cargo_metadata::Package| {
        let folder = package
            .manifest_path
            .parent()
            .and_then(|folder| folder.strip_prefix(&root).ok());
        let needs = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development);
        Crate {
            name: package.name.to_string(),
            folder: folder.map(ToString::to_string).unwrap_or_default(),
            needs: needs.map(|dependency| dependency.name.clone()).collect(),
        }
    };
    metadata.packages.iter().map(describe).collect()
}

/// The kind of a crate; `None` if it is not listed.
pub fn nature(name: &str) -> Option<Nature> {
    CRATES.iter().find(|place| place.name == name).map(|place| place.nature)
}

/// Dependencies in the wrong direction, and pure crates that depend on crates not known to be pure.
pub fn check(crates: &[Crate]) -> Vec<Violation> {
    crates.iter().flat_map(check_one).collect()
}

fn check_one(member: &Crate) -> Vec<Violation> {
    let Some(place) = CRATES.iter().find(|place| place.name == member.name) else {
        return vec![Violation::of(
            &member.name,
            "is not listed: add it to tests/tidy/src/layering.rs and ARCHITECTURE.md",
        )];
    };
    let wrong = |need: &&String| {
        let ours = CRATES.iter().any(|other| other.name == **need);
        match (ours, place.nature) {
            (true, Nature::Harness) => *need == COMMAND_LINE,
            (true, Nature::Pure | Nature::Shell) => !place.knows.iter().any(|group| group.contains(&need.as_str())),
            (false, Nature::Pure) => !COMPUTES.contains(&need.as_str()),
            (false, Nature::Shell | Nature::Harness) => false,
        }
    };
    let complain = |need: &String| match place.nature {
        Nature::Pure => {
            format!("must not depend on {need}: a pure crate depends only on lower layers and pure libraries")
        }
        Nature::Shell | Nature::Harness => format!("must not depend on {need}: dependencies point one way"),
    };
    member
        .needs
        .iter()
        .filter(wrong)
        .map(|need| Violation::of(&member.name, complain(need)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, needs: &[&str]) -> usize {
        let needs = needs.iter().map(ToString::to_string).collect();
        check(&[Crate {
            name: name.to_owned(),
            folder: String::new(),
            needs,
        }])
        .len()
    }

    #[test]
    fn disallowed_dependencies_are_found() {
        assert_eq!(
            verdict("annals-event", &["annals-wire"]),
            1,
            "schema depends on no layer above it"
        );
        assert_eq!(
            verdict("annals-cell", &["annals-base"]),
            1,
            "cores do not depend on each other"
        );
        assert_eq!(
            verdict("annals-cell", &["annals-store"]),
            1,
            "the cell core does not depend on the store"
        );
        assert_eq!(
            verdict("annals-base", &["annals-host"]),
            1,
            "cores do not depend on their shell"
        );
        assert_eq!(
            verdict("annals-host", &["annals"]),
            1,
            "no crate depends on the command line"
        );
        assert_eq!(verdict("annals-sim", &["annals"]), 1, "tests do not either");
        assert_eq!(verdict("annals-new", &[]), 1, "a new crate needs a place");
    }

    #[test]
    fn servers_do_not_depend_on_authoring_crates() {
        let servers = CORES
            .iter()
            .chain(NODE)
            .chain(STORE)
            .chain(&["annals-host", "annals-sample"]);
        for server in servers {
            assert_eq!(verdict(server, AUTHORING), 1, "{server}");
        }
        assert_eq!(
            verdict("annals-def", AUTHORING),
            1,
            "the language does not depend on its tools"
        );
        assert_eq!(
            verdict(COMMAND_LINE, AUTHORING),
            0,
            "the command line may depend on authoring crates"
        );
    }

    #[test]
    fn impure_dependencies_of_pure_crates_are_found() {
        for outside in ["tokio", "async-nats", "quinn", "rand", "rustix", "libc", "fjall"] {
            assert_eq!(verdict("annals-node", &[outside]), 1, "{outside}");
        }
    }

    #[test]
    fn allowed_dependencies_are_accepted() {
        assert_eq!(
            verdict("annals-cell", &["annals-ids", "annals-node", "annals-space", "sha2"]),
            0
        );
        assert_eq!(verdict("annals-host", &["annals-cell", "annals-db", "tokio"]), 0);
        assert_eq!(verdict("annals-realm", &["annals-host", "annals-client", "tokio"]), 0);
    }
}
