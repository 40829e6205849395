//! The output of `annals log segments`.

use annals::segments::Segments;
use annals_ids::{Shard, WallTime};
use annals_store::MemoryStore;

use super::world::World;

const STEPS: usize = 120;

#[tokio::test]
async fn segments_are_listed() {
    let mut world = World::generate(MemoryStore::new().store(), 1, STEPS / 4).await;
    world.play(1_001, STEPS - STEPS / 4).await;
    world.archive().await;
    let sealed = world.seal(50).await;
    let listed = Segments::list(&world.store, Shard(0), WallTime(1_000)).await.unwrap();
    let text = listed.to_string();
    assert_eq!(
        (listed.sealed.len(), text.lines().count()),
        (sealed, sealed + 1),
        "{text}"
    );
    let loose = world.frozen.len() - 50 * sealed;
    let all = format!(
        "{sealed} segments; {loose} of {} leaves are not sealed yet",
        world.frozen.len()
    );
    assert!(text.ends_with(&all), "{text}");
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("leaves 0 to 49  00:00:00.000 to 00:00:02.450"),
        "{first}"
    );
    for log in &world.logs {
        let last = world.frozen[..50]
            .iter()
            .rev()
            .find(|batch| batch.owner == log.owner)
            .unwrap();
        assert!(first.contains(&format!(" {}@1-{}", log.owner, last.number)), "{first}");
    }
}
