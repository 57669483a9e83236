//! Which sidecar belongs to which data file (design section 7): by a UUID, never by a part of a name.

use firn_model::BlobId;
use uuid::Uuid;

/// Length of a UUID with its hyphens.
const UUID_LENGTH: usize = 36;
/// Length of the hash that begins the names of Firn's own files.
const HASH_LENGTH: usize = 32;

/// The UUID by which the sidecars of a data file are called: the one that Firn gave the file (`<hash>-<uuid>.parquet`), for any other
/// file UUIDv5 of its whole canonical path. Other writers repeat one UUID over all files of a commit.
pub fn sidecar_uuid(id: &BlobId) -> Uuid {
    own_uuid(id).unwrap_or_else(|| Uuid::new_v5(&Uuid::NAMESPACE_URL, id.to_string().as_bytes()))
}

/// The UUID in a name of Firn's own.
fn own_uuid(id: &BlobId) -> Option<Uuid> {
    let name = id.key.rsplit('/').next()?;
    let stem = name.strip_suffix(".parquet")?;
    let at = stem.len().checked_sub(UUID_LENGTH)?;
    let (before, uuid) = (stem.get(..at)?, stem.get(at..)?);
    let hash = before.strip_suffix('-')?;
    let hash = hash.get(hash.len().checked_sub(HASH_LENGTH)?..)?;
    let is_hash = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hash { Uuid::try_parse(uuid).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f";

    fn blob(key: &str) -> BlobId {
        BlobId { account: "acct".into(), container: "lake".into(), key: key.into() }
    }

    #[test]
    fn own_names_carry_their_uuid_and_others_are_known_by_their_whole_path() {
        let hash = "0123456789abcdef0123456789abcdef";
        let own = Uuid::parse_str(UUID).unwrap();
        assert_eq!(sidecar_uuid(&blob(&format!("t/data/{hash}-{UUID}.parquet"))), own);
        assert_eq!(
            sidecar_uuid(&blob(&format!("t/data/0110/10110010-{hash}-{UUID}.parquet"))),
            own,
            "object storage layout"
        );
        // Spark's and PyIceberg's names: one UUID stands in many of them.
        for name in
            [format!("00000-0-{UUID}.parquet"), format!("{UUID}.parquet"), format!("00000-7-{UUID}-00001.parquet")]
        {
            assert_ne!(sidecar_uuid(&blob(&format!("t/data/{name}"))), own, "{name}");
        }
        let (one, other) = (sidecar_uuid(&blob("t/data/a.parquet")), sidecar_uuid(&blob("t/data/b.parquet")));
        assert_ne!(one, other);
        assert_eq!(one, sidecar_uuid(&blob("t/data/a.parquet")));
        assert_ne!(one, sidecar_uuid(&BlobId::local("/t/data/a.parquet")));
    }
}
