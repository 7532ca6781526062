// SQLite as a replicated state machine: each command is SQL text, which every replica executes in
// its own database file.
#pragma once

#include <leasehold/replica/state_machine.h>

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
using Connection = std::unique_ptr<sqlite3, CloseConnection>;

/// One replica's database, FOLDER/data.db. Only commands write to it.
///
/// Every replica has to come to the same state, so a command may hold nothing that differs between
/// them: no random(), no time of day, no PRAGMA, no transaction of its own. database.cc lists the
/// functions that a command may use; all others are refused with a text that says so. Let your
/// program compute such values and put them into the SQL. All members need the same version of
/// SQLite.
class Database final : public leasehold::replica::StateMachine {
 public:
  /// Opens the file, or makes it. Errors: io, corrupted.
  static leasehold::Result<std::unique_ptr<Database>> open(const std::string& folder);

  /// What was in the file: its pages and the index of its last command change together.
  leasehold::raft::Index durable_index() const override;
  /// The result of a command begins with "ok " and has the rows that it returns, or with "error: ",
  /// and then it has changed nothing.
  std::vector<leasehold::Bytes> apply(const std::vector<leasehold::replica::Command>& commands,
                                      leasehold::raft::Index last) override;
  leasehold::Result<leasehold::raft::Index> make_durable() override;
  leasehold::Result<std::shared_ptr<const leasehold::replica::Snapshot>> take_snapshot() override;
  leasehold::Result<void> install_snapshot(const leasehold::replica::Snapshot& snapshot) override;

 private:
  Database(std::string folder, Connection writer);
  leasehold::Bytes execute(std::string_view sql, leasehold::raft::Index index);
  void note_applied(leasehold::raft::Index index);

  const std::string folder_;
  const std::string path_;
  Connection writer_;  ///< of the thread that applies
  /// Of the file. Written by the thread that applies.
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> snapshots_{0};  ///< taken: each has a file of its own
};

/// A connection that only reads, for one thread. A read that begins behind
/// Node::read_point(ReadMode::lease) is linearizable.
class Reader {
 public:
  /// Errors: io.
  static leasehold::Result<Reader> open(const std::string& folder);
  /// Whether all of `sql` reads; false also where it is not SQL: then a command says what is wrong.
  bool reads(const std::string& sql) const;
  /// The rows of one statement: a line each, its columns apart by tabs. Errors: invalid_argument.
  leasehold::Result<std::string> query(const std::string& sql) const;

 private:
  explicit Reader(Connection connection) : connection_(std::move(connection)) {}
  Connection connection_;
};
