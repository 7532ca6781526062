// The records of the store's database (docs/formats/kv.md), and RocksDB's outcomes as errors. Not
// for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/store.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace leasehold::kv {

inline constexpr std::string_view kIdentityKey("\0\1", 2);
inline constexpr std::string_view kCountersKey("\0\2", 2);
inline constexpr std::string_view kNewestSessionKey("\0\3", 2);
/// The first bytes of the key of every session; the id follows.
inline constexpr std::string_view kSessionSpace("\0\4", 2);
inline constexpr std::string_view kNewestLeaseKey("\0\5", 2);
/// The first bytes of the keys: of every lease, an id follows; of every name, it follows; of every
/// key that is attached, the lease's id and the key follow; of every fence, the key follows.
inline constexpr std::string_view kLeaseSpace("\0\6", 2);
inline constexpr std::string_view kLeaseNameSpace("\0\7", 2);
inline constexpr std::string_view kAttachedSpace("\0\10", 2);
inline constexpr std::string_view kFenceSpace("\0\11", 2);
/// That of every user; the name follows.
inline constexpr std::string_view kUserSpace("\0\12", 2);
/// The sum of the records, and why the database is not served any more.
inline constexpr std::string_view kSumKey("\0\13", 2);
inline constexpr std::string_view kDistrustKey("\0\14", 2);
/// That of every slot that a move has concerned; its number follows, in two bytes.
inline constexpr std::string_view kSlotSpace("\0\15", 2);
/// The first byte of every key of data; its space is the last one of the database.
inline constexpr char kDataSpace = 1;

using Record = std::vector<std::uint64_t>;

/// {format u8} and numbers.
std::string encode_record(std::initializer_list<std::uint64_t> numbers);
/// The head of a value, which its bytes follow. Of format 1, or 2 if it is attached to a lease.
std::string encode_value_head(const Value& value);
/// A value with its bytes. Errors: corrupted, unsupported_format.
Result<Value> decode_value(std::string_view bytes, Load load = Load::whole);
/// The same; the value's bytes are in `record`.
Result<Value> take_value(std::string record, Load load);
/// The reverse, for `count` numbers; the rest stays in `bytes`. Errors: corrupted,
/// unsupported_format.
Result<Record> decode_record(std::string_view what, std::string_view& bytes, std::size_t count);
/// As decode_record(), for a record that ends there.
Result<Record> decode_whole_record(std::string_view what, std::string_view bytes,
                                   std::size_t count);

/// What RocksDB said, as in_use, io or corrupted.
Error status_error(const std::string& what, const rocksdb::Status& status);
/// `error` with the folder named, and what to do about a damaged one.
Error in_folder(const std::string& dir, const Error& error);

}  // namespace leasehold::kv
