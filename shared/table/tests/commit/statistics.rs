//! Statistics into the metadata while others write: there once, or a reason.

use firn_table::{Registered, StatisticsError, register_statistics};
use iceberg::TableRequirement;
use iceberg::spec::StatisticsFile;

use crate::doubles::{Fault, Faulty, meanwhile};
use crate::files::*;
use crate::lake::*;

fn statistics(snapshot_id: i64, path: &str) -> StatisticsFile {
    StatisticsFile {
        snapshot_id,
        statistics_path: path.to_owned(),
        file_size_in_bytes: 100,
        file_footer_size_in_bytes: 60,
        key_metadata: None,
        blob_metadata: Vec::new(),
    }
}

/// Registers statistics of the head while the swaps go wrong as `faults` say; gives the paths that the table has then.
async fn register(
    lake: &Lake,
    faults: Vec<Fault<'_>>,
    retry_max: u64,
) -> (Result<Registered, StatisticsError>, Vec<String>, Vec<Vec<TableRequirement>>) {
    let table = lake.load().await;
    let id = table.metadata.current_snapshot_id().unwrap();
    let faulty = Faulty::new(&lake.catalog, faults);
    let result = register_statistics(&faulty, &table, "main", &statistics(id, "own"), retry_max).await;
    let requirements = faulty.requirements.lock().unwrap().clone();
    let paths = lake.load().await.metadata.statistics_iter().map(|file| file.statistics_path.clone()).collect();
    (result, paths, requirements)
}

async fn lake() -> Lake {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1)]).await;
    lake
}

#[tokio::test]
async fn whatever_becomes_of_an_answer_they_are_there_once() {
    for (fault, tries) in [
        (Fault::AppliedButLost, 1),
        (Fault::AppliedThenRefused, 1),
        (Fault::LostBefore, 2),
        (Fault::Refused, 2),
        (Fault::NotSent, 2),
        (Fault::Ignored, 2),
        (Fault::RefusedWhileUnderWay, 2),
    ] {
        let lake = lake().await;
        let (result, paths, _) = register(&lake, vec![fault], 3).await;
        assert_eq!(result.unwrap().tries, tries);
        assert_eq!(paths, ["own"]);
    }
}

#[tokio::test]
async fn a_commit_in_between_does_not_matter_while_the_snapshot_is_there() {
    let lake = lake().await;
    let appended = meanwhile(&lake, Change { data: vec![file("f2", "a", 2)], ..Change::default() });
    let (result, paths, requirements) = register(&lake, vec![appended], 3).await;
    let registered = result.unwrap();
    assert_eq!((registered.tries, paths), (2, vec!["own".to_owned()]));
    assert_eq!(registered.table.metadata.snapshots().count(), 2);
    // The head while it was the head; then the table alone.
    assert_eq!(requirements.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
}

#[tokio::test]
async fn what_cannot_be_sent_says_why() {
    let lake = lake().await;
    let (result, paths, _) = register(&lake, vec![Fault::Forbidden], 3).await;
    assert!(matches!(result, Err(StatisticsError::Refused(_))), "{result:?}");
    let (result, _, _) = register(&lake, vec![Fault::Refused, Fault::Refused], 1).await;
    assert!(matches!(result, Err(StatisticsError::Conflicts { tries: 2, .. })), "{result:?}");
    let (result, _, _) = register(&lake, vec![Fault::LostBefore, Fault::LostBefore], 1).await;
    assert!(matches!(result, Err(StatisticsError::Unknown { tries: 2, .. })), "{result:?}");
    assert_eq!(paths, [""; 0]);
    // The last answer was lost, and it was applied: seen at the end.
    let (result, paths, _) = register(&lake, vec![Fault::AppliedButLost], 0).await;
    assert_eq!((result.unwrap().tries, paths), (1, vec!["own".to_owned()]));
}
