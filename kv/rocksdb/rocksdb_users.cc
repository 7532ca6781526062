#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_users.h>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <utility>

namespace leasehold::kv {

Result<UserMap> read_users(rocksdb::DB& db) {
  UserMap users;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  const rocksdb::Slice space(kUserSpace.data(), kUserSpace.size());
  for (at->Seek(space); at->Valid() && at->key().starts_with(space); at->Next()) {
    std::string name = at->key().ToString().substr(kUserSpace.size());
    std::string_view bytes(at->value().data(), at->value().size());
    const auto numbers = decode_record("user", bytes, 2);
    if (!numbers) return numbers.error();
    if (name.empty() || name.size() > kUserNameBytesMax || bytes.size() > kUserRulesBytesMax) {
      return Error{ErrorCode::corrupted, "the record of a user is damaged"};
    }
    users.emplace(std::move(name),
                  std::make_shared<const User>(
                      User{numbers.value()[0], numbers.value()[1], std::string(bytes)}));
  }
  if (!at->status().ok()) return status_error("cannot read the users", at->status());
  return users;
}

void put_users(const Users& users, rocksdb::WriteBatch& batch) {
  for (const std::string& name : users.changed()) {
    const std::string key = std::string(kUserSpace) + name;
    if (const User* user = users.find(name)) {
      LEASEHOLD_ASSERT(
          batch.Put(key, encode_record({user->version, user->created}) + user->rules).ok());
    } else {
      LEASEHOLD_ASSERT(batch.Delete(key).ok());
    }
  }
}

}  // namespace leasehold::kv
