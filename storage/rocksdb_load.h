// How the log's database is set up, and what is read from it at open.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/record.h>

#include <rocksdb/db.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::storage {

/// Small in memory, strict about damage, silent. `create` allows a new database to be made.
rocksdb::Options log_database_options(bool create);

/// What a status means to the node. `what` begins the message: "cannot open the log in DIR".
Error status_error(const std::string& what, const rocksdb::Status& status);

/// The shape of one group's log.
struct LoadedLog {
  std::optional<raft::Membership> confirmed;
  std::optional<BaseRecord> base;
  StateRecord state;
  std::vector<raft::TermRun> runs;
  std::vector<raft::MembershipAt> memberships;
};

/// The record under `key`; none if there is none. Errors: corrupted, io.
Result<std::optional<std::string>> load_record(rocksdb::DB& db, const std::string& key);

/// Reads every record of the group and proves that nothing is missing: the state record says where
/// the log ends, the base where it begins, and each entry which term stands before it. Errors:
/// corrupted, unsupported_format, io.
Result<LoadedLog> load_log(rocksdb::DB& db, raft::GroupId group);

}  // namespace leasehold::storage
