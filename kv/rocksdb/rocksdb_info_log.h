// RocksDB's own messages. Not for other rooms.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rocksdb {
class Env;
class Logger;
}  // namespace rocksdb

namespace leasehold::kv {

/// A file of messages is replaced when it has this many bytes.
inline constexpr std::size_t kInfoLogBytes = std::size_t{1} << 20U;

/// Takes warnings and errors, and writes them to the file `LOG` of the database's folder, as
/// RocksDB's users know it. When that is large enough, it becomes `LOG.old` and a new one begins.
///
/// A line that cannot be written is dropped. RocksDB's own logger asserts instead, in a build with
/// assertions as Debian's is: a full disk would end the node, which can serve reads on it.
///
/// The folder may be made later: the file is opened at the first line. `env` has the time, and
/// outlives the logger. Any thread may log.
std::shared_ptr<rocksdb::Logger> make_info_log(const std::string& folder, rocksdb::Env* env);

}  // namespace leasehold::kv
