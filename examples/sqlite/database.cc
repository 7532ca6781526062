#include "database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

using leasehold::Bytes;
using leasehold::Error;
using leasehold::ErrorCode;
using leasehold::Result;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

namespace {

/// In the file itself, so that a transaction changes it together with the rows.
constexpr const char* kAppliedTable = "leasehold_applied";
constexpr const char* kMakeTable =
    "CREATE TABLE IF NOT EXISTS leasehold_applied("
    "one INTEGER PRIMARY KEY CHECK (one = 1), log_index INTEGER NOT NULL);"
    "INSERT OR IGNORE INTO leasehold_applied VALUES (1, 0)";
/// A command of more would keep every replica busy, and the leader from its lease.
constexpr int kStepsMax = 1000;
constexpr int kInstructionsPerStep = 10'000;
constexpr std::size_t kRowsBytesMax = std::size_t{1} << 20U;
constexpr int kValueBytesMax = 16 << 20;

/// What SQLite asks while a command is prepared and runs.
struct Guard {
  bool on = false;  ///< else the replica itself uses the connection
  int steps = 0;
  const char* refused = nullptr;
};
thread_local Guard guard;

/// The functions of a command: their values depend on their arguments alone. All others are
/// refused, also those of a later version of SQLite: the time, random numbers and what one
/// connection knows differ between replicas, and a logarithm or a sine may, in its last digit,
/// between processors.
constexpr std::string_view kSame =
    " -> ->> abs avg ceil ceiling char coalesce count cume_dist dense_rank first_value floor"
    " format glob group_concat hex ifnull iif instr json json_array json_array_length"
    " json_extract json_group_array json_group_object json_insert json_object json_patch"
    " json_quote json_remove json_replace json_set json_type json_valid lag last_value lead"
    " length like likelihood likely lower ltrim match max min mod nth_value ntile nullif"
    " octet_length offsets percent_rank printf quote rank replace round row_number rtrim sign"
    " snippet soundex string_agg substr substring sum total trim trunc typeof unhex unicode"
    " unlikely upper zeroblob ";
/// The same of virtual tables. (FTS5 ranks by a logarithm.)
constexpr const char* kSameModules[] = {"fts3",      "fts4",      "rtree", "rtree_i32",
                                        "json_each", "json_tree", nullptr};

void refuse_function(sqlite3_context* context, int /*unused*/, sqlite3_value** /*unused*/) {
  sqlite3_result_error(context,
                       "a function whose value may differ between replicas: let your program "
                       "compute the value, and put it into the SQL",
                       -1);
}

bool is(const char* word, const char* name) {
  return word != nullptr && sqlite3_stricmp(word, name) == 0;
}

int authorize(void* /*unused*/, int action, const char* first, const char* second,
              const char* /*database*/, const char* /*trigger*/) {
  if (!guard.on) return SQLITE_OK;
  const auto refuse = [](const char* why) {
    guard.refused = why;
    return SQLITE_DENY;
  };
  if (is(first, kAppliedTable) || is(second, kAppliedTable)) {
    return refuse("the table leasehold_applied is the replica's own");
  }
  switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT: return refuse("each command is one transaction: send it whole");
    case SQLITE_PRAGMA:
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return refuse("PRAGMA, ATTACH and DETACH change one replica alone");
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_CREATE_TEMP_TRIGGER: return refuse("what is temporary is of one replica alone");
    default: return SQLITE_OK;
  }
}

/// Counted in instructions of SQLite, not in time: so each replica stops at the same one.
int count_steps(void* /*unused*/) {
  return guard.on && ++guard.steps > kStepsMax ? 1 : 0;
}

Error error_of(sqlite3* connection, const std::string& what) {
  return {ErrorCode::io, what + ": " + sqlite3_errmsg(connection)};
}

Result<Connection> connect(const std::string& path, int flags) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(opened);
  if (status != SQLITE_OK) return error_of(opened, "cannot open " + path);
  sqlite3_busy_timeout(opened, 10'000);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kValueBytesMax);
  return connection;
}

Result<void> run(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return error_of(connection, sql);
}

/// Of the first column of the first row; 0: there is none.
Result<std::int64_t> number(sqlite3* connection, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return error_of(connection, sql);
  }
  const int status = sqlite3_step(statement);
  const std::int64_t value = status == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  if (status != SQLITE_ROW && status != SQLITE_DONE) return error_of(connection, sql);
  return value;
}

Result<std::int64_t> applied_of(sqlite3* connection) {
  return number(connection, "SELECT log_index FROM leasehold_applied");
}

/// Errors that a retry at another replica would not have: this one cannot go on. The log has the
/// command, and the next start executes it.
[[noreturn]] void end_replica(sqlite3* connection, const char* what) {
  std::fprintf(stderr, "the database failed: %s: %s. Free its disk or repair it, and start again\n",
               what, sqlite3_errmsg(connection));
  std::abort();
}

bool is_of_the_command(int status) {
  switch (status & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
    case SQLITE_AUTH:
    case SQLITE_INTERRUPT:
    case SQLITE_SCHEMA: return true;
    default: return false;
  }
}

void append_value(std::string& out, sqlite3_stmt* statement, int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
    out += "NULL";
    return;
  }
  const bool blob = sqlite3_column_type(statement, column) == SQLITE_BLOB;
  const auto* const text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  if (blob) out += "0x";
  for (std::size_t i = 0; i < bytes; ++i) {
    if (blob) {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(text[i]);
      out += {kDigits[byte >> 4U], kDigits[byte & 15U]};
      continue;
    }
    switch (text[i]) {
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\\': out += "\\\\"; break;
      default: out += text[i];
    }
  }
}

struct Rows {
  std::string text;
  std::size_t count = 0;
};

/// Executes one statement; the status of SQLite.
int step_all(sqlite3_stmt* statement, Rows& rows) {
  int status = SQLITE_ROW;
  while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      if (column > 0) rows.text += '\t';
      append_value(rows.text, statement, column);
    }
    rows.text += '\n';
    ++rows.count;
    if (rows.text.size() > kRowsBytesMax) return SQLITE_TOOBIG;
  }
  return status == SQLITE_DONE ? SQLITE_OK : status;
}

/// Executes each statement of `sql`; the status of the first that fails.
int execute_all(sqlite3* connection, std::string_view sql, Rows& rows) {
  const char* at = sql.data();
  const char* const end = at + sql.size();
  while (at != end) {
    sqlite3_stmt* statement = nullptr;
    int status = sqlite3_prepare_v2(connection, at, static_cast<int>(end - at), &statement, &at);
    if (status != SQLITE_OK) return status;
    if (statement == nullptr) continue;  // a comment, or spaces
    status = step_all(statement, rows);
    sqlite3_finalize(statement);
    if (status != SQLITE_OK) return status;
  }
  return SQLITE_OK;
}

/// Replaces each function that is not in kSame by an error. Defaults of columns and triggers call
/// the error, too.
Result<void> leave_only_the_same(sqlite3* connection) {
  sqlite3_stmt* statement = nullptr;
  const char* const all = "SELECT DISTINCT name, narg FROM pragma_function_list";
  if (sqlite3_prepare_v2(connection, all, -1, &statement, nullptr) != SQLITE_OK) {
    return error_of(connection, "cannot list the functions of SQLite (3.30 has it)");
  }
  std::vector<std::pair<std::string, int>> others;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    const bool same = kSame.find(' ' + name + ' ') != std::string_view::npos;
    if (!same) others.emplace_back(name, sqlite3_column_int(statement, 1));
  }
  if (sqlite3_finalize(statement) != SQLITE_OK || others.empty()) return error_of(connection, all);
  for (const auto& [name, arguments] : others) {
    if (sqlite3_create_function(connection, name.c_str(), arguments, SQLITE_UTF8, nullptr,
                                refuse_function, nullptr, nullptr) != SQLITE_OK) {
      return error_of(connection, "cannot refuse the function " + name);
    }
  }
  if (sqlite3_drop_modules(connection, const_cast<const char**>(kSameModules)) != SQLITE_OK) {
    return error_of(connection, "cannot refuse the modules of SQLite");
  }
  return {};
}

Result<void> sync(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return {};
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int problem = errno;
  if (file >= 0) ::close(file);
  if (synced) return {};
  return Error{ErrorCode::io, "cannot sync " + path + ": " + std::strerror(problem)};
}

Result<void> copy(sqlite3* from, sqlite3* to) {
  sqlite3_backup* const backup = sqlite3_backup_init(to, "main", from, "main");
  if (backup == nullptr) return error_of(to, "cannot copy the database");
  int status = SQLITE_OK;
  while ((status = sqlite3_backup_step(backup, -1)) == SQLITE_BUSY || status == SQLITE_LOCKED) {
    sqlite3_sleep(1);
  }
  if (sqlite3_backup_finish(backup) == SQLITE_OK && status == SQLITE_DONE) return {};
  return error_of(to, "cannot copy the database");
}

/// A copy of the database in a file without a name.
class CopyInFile final : public replica::Snapshot {
 public:
  CopyInFile(int file, std::uint64_t size, raft::Index last)
      : file_(file), size_(size), last_(last) {}
  CopyInFile(const CopyInFile&) = delete;
  CopyInFile& operator=(const CopyInFile&) = delete;
  ~CopyInFile() override { ::close(file_); }

  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    while (bytes > 0) {
      const ssize_t got = ::pread(file_, to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Error{ErrorCode::io, "cannot read the copy of the database"};
      to += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return {};
  }

 private:
  const int file_;
  const std::uint64_t size_;
  const raft::Index last_;
};

Result<void> write_file(const replica::Snapshot& snapshot, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  std::vector<char> part(std::size_t{1} << 20U);
  for (std::uint64_t at = 0; at < snapshot.size() && file; at += part.size()) {
    part.resize(std::min<std::uint64_t>(part.size(), snapshot.size() - at));
    if (auto read = snapshot.read(at, part.data(), part.size()); !read.ok()) return read;
    file.write(part.data(), static_cast<std::streamsize>(part.size()));
  }
  if (file.flush()) return {};
  return Error{ErrorCode::io, "cannot write " + path};
}

int only_reads(void* /*unused*/, int action, const char* /*first*/, const char* /*second*/,
               const char* /*database*/, const char* /*trigger*/) {
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ ||
                     action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE;
  return reads ? SQLITE_OK : SQLITE_DENY;
}

}  // namespace

// ---- The state machine ----

Result<std::unique_ptr<Database>> Database::open(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const std::string path = folder + "/data.db";
  auto connection = connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!connection.ok()) return connection.error();
  sqlite3* const writer = connection.value().get();
  sqlite3_db_config(writer, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Readers do not wait for the writer. A commit is durable when make_durable() says so; until then
  // the log has it.
  for (const char* const sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", kMakeTable}) {
    if (auto done = run(writer, sql); !done.ok()) return done.error();
  }
  const auto applied = applied_of(writer);
  if (!applied.ok()) return applied.error();
  if (auto left = leave_only_the_same(writer); !left.ok()) return left.error();
  sqlite3_set_authorizer(writer, authorize, nullptr);
  sqlite3_progress_handler(writer, kInstructionsPerStep, count_steps, nullptr);
  std::unique_ptr<Database> database(new Database(folder, std::move(connection).value()));
  database->applied_ = static_cast<std::uint64_t>(applied.value());
  return database;
}

Database::Database(std::string folder, Connection writer)
    : folder_(std::move(folder)), path_(folder_ + "/data.db"), writer_(std::move(writer)) {}

raft::Index Database::durable_index() const {
  return raft::Index(applied_.load());
}

std::vector<Bytes> Database::apply(const std::vector<replica::Command>& commands,
                                   raft::Index last) {
  std::vector<Bytes> results;
  results.reserve(commands.size());
  for (const replica::Command& command : commands) {
    results.push_back(execute(command.bytes, command.id.index));
  }
  if (last.value() > applied_) {
    note_applied(last);
    applied_ = last.value();
  }
  return results;
}

// One transaction for the command and its index: after a crash both are there, or neither.
Bytes Database::execute(std::string_view sql, raft::Index index) {
  sqlite3* const writer = writer_.get();
  if (!run(writer, "BEGIN IMMEDIATE").ok()) end_replica(writer, "BEGIN");
  const std::int64_t before = sqlite3_total_changes64(writer);
  Rows rows;
  guard = {true, 0, nullptr};
  int status = execute_all(writer, sql, rows);
  guard.on = false;
  const std::int64_t changed = sqlite3_total_changes64(writer) - before;
  std::string problem = guard.refused != nullptr ? guard.refused : sqlite3_errmsg(writer);
  if (status == SQLITE_INTERRUPT) problem = "it takes too many steps";
  if (status == SQLITE_TOOBIG && rows.text.size() > kRowsBytesMax) problem = "it returns too much";
  if (status == SQLITE_OK) {
    note_applied(index);
    status = sqlite3_exec(writer, "COMMIT", nullptr, nullptr, nullptr);
    problem = sqlite3_errmsg(writer);  // of a constraint that is looked at in the end
  }
  if (status == SQLITE_OK) {
    applied_ = index.value();
    return Bytes("ok " + std::to_string(rows.count) + " rows, " + std::to_string(changed) +
                 " changed\n" + rows.text);
  }
  if (!is_of_the_command(status)) end_replica(writer, "a command");
  if (sqlite3_get_autocommit(writer) == 0 && !run(writer, "ROLLBACK").ok()) {
    end_replica(writer, "ROLLBACK");
  }
  return Bytes("error: " + problem + "\n");
}

void Database::note_applied(raft::Index index) {
  const std::string sql =
      "UPDATE leasehold_applied SET log_index = " + std::to_string(index.value());
  if (!run(writer_.get(), sql.c_str()).ok()) end_replica(writer_.get(), "the applied index");
}

// What is committed stands in the write-ahead file or in the database; SQLite moves it from one to
// the other in an order that survives a crash.
Result<raft::Index> Database::make_durable() {
  const raft::Index applied(applied_.load());
  for (const std::string& path : {path_ + "-wal", path_, folder_}) {
    if (auto synced = sync(path); !synced.ok()) return synced.error();
  }
  return applied;
}

Result<std::shared_ptr<const replica::Snapshot>> Database::take_snapshot() {
  const std::string path = folder_ + "/copy" + std::to_string(++snapshots_) + ".db";
  std::remove(path.c_str());
  raft::Index last;
  {
    auto from = connect(path_, SQLITE_OPEN_READONLY);
    if (!from.ok()) return from.error();
    auto to = connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!to.ok()) return to.error();
    if (auto done = copy(from.value().get(), to.value().get()); !done.ok()) return done.error();
    // Then it is one file.
    if (auto done = run(to.value().get(), "PRAGMA journal_mode = DELETE"); !done.ok()) {
      return done.error();
    }
    const auto applied = applied_of(to.value().get());
    if (!applied.ok()) return applied.error();
    last = raft::Index(static_cast<std::uint64_t>(applied.value()));
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::remove(path.c_str());
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    if (file >= 0) ::close(file);
    return Error{ErrorCode::io, "cannot open the copy of the database"};
  }
  return std::shared_ptr<const replica::Snapshot>(
      new CopyInFile(file, static_cast<std::uint64_t>(status.st_size), last));
}

Result<void> Database::install_snapshot(const replica::Snapshot& snapshot) {
  const std::string path = folder_ + "/incoming.db";
  if (auto written = write_file(snapshot, path); !written.ok()) return written;
  {
    auto incoming = connect(path, SQLITE_OPEN_READWRITE);
    if (!incoming.ok()) return incoming.error();
    const auto sound =
        number(incoming.value().get(), "SELECT quick_check = 'ok' FROM pragma_quick_check");
    const auto applied = applied_of(incoming.value().get());
    const bool whole = sound.ok() && sound.value() == 1 && applied.ok() &&
                       static_cast<std::uint64_t>(applied.value()) == snapshot.last().value();
    if (!whole) {
      return Error{ErrorCode::corrupted, "the snapshot is not a sound database of this program"};
    }
    // One transaction: readers, and a start after a crash, see the old state or the new one.
    if (auto done = copy(incoming.value().get(), writer_.get()); !done.ok()) return done;
  }
  applied_ = snapshot.last().value();
  const auto durable = make_durable();
  std::remove(path.c_str());
  return durable.ok() ? Result<void>() : Result<void>(durable.error());
}

// ---- Reads ----

Result<Reader> Reader::open(const std::string& folder) {
  auto connection = connect(folder + "/data.db", SQLITE_OPEN_READONLY);
  if (!connection.ok()) return connection.error();
  // No transaction either: it would read an old state again and again.
  sqlite3_set_authorizer(connection.value().get(), only_reads, nullptr);
  return Reader(std::move(connection).value());
}

bool Reader::reads(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int status = sqlite3_prepare_v2(connection_.get(), sql.c_str(), -1, &statement, &rest);
  const bool one =
      status == SQLITE_OK && statement != nullptr && std::strspn(rest, " \t;") == std::strlen(rest);
  sqlite3_finalize(statement);
  return one;
}

Result<std::string> Reader::query(const std::string& sql) const {
  Rows rows;
  if (execute_all(connection_.get(), sql, rows) != SQLITE_OK) {
    const bool too_much = rows.text.size() > kRowsBytesMax;
    return Error{ErrorCode::invalid_argument,
                 too_much ? "it returns too much" : sqlite3_errmsg(connection_.get())};
  }
  return "ok " + std::to_string(rows.count) + " rows, 0 changed\n" + rows.text;
}
