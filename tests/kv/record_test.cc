// The bytes of the records that docs/formats/kv.md and docs/formats/snapshot.md describe.
#include <leasehold/kv/lease_record.h>
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>

#include <gtest/gtest.h>

namespace leasehold::kv {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kLong = 0x0102030405060708U;
constexpr auto kLongBytes = "\1\2\3\4\5\6\7\10"sv;

grant::LeaseTable::Lease some_lease() {
  grant::LeaseTable::Lease lease;
  lease.id = grant::LeaseId(7);
  lease.name = "lock";
  lease.holder = "me";
  lease.ttl = lease::Duration(0x1122334455);
  lease.token = grant::FencingToken(kLong);
  lease.stamp = 0x0a0b;
  lease.asked_at_ms = 0x0c0d;
  lease.terms.grace = grant::LeaseTerms::Milliseconds(0x2a2b);
  lease.terms.delay = grant::LeaseTerms::Milliseconds(0x3a3b);
  return lease;
}

std::string some_lease_bytes() {
  std::string bytes = "\3";
  bytes += kLongBytes;
  bytes += "\0\0\0\0\0\0\x0a\x0b"sv;
  bytes += "\0\0\0\x11\x22\x33\x44\x55"sv;
  bytes += "\0\0\0\0\0\0\x0c\x0d"sv;
  bytes += "\0"sv;
  bytes += "\0\0\x2a\x2b"sv;
  bytes += "\0\0\x3a\x3b"sv;
  bytes += "\0\0\0\4lock"sv;
  bytes += "me";
  return bytes;
}

TEST(RecordFormat, ThatOfALeaseIsPinned) {
  EXPECT_EQ(encode_lease(some_lease()), some_lease_bytes());
  EXPECT_EQ(decode_lease(grant::LeaseId(7), some_lease_bytes()).value(), some_lease());
  grant::LeaseTable::Lease other = some_lease();
  other.terms.soft = true;
  EXPECT_EQ(encode_lease(other)[33], 1);
  other.terms.soft = false;
  other.delayed = true;
  EXPECT_EQ(encode_lease(other)[33], 2);
}

TEST(RecordFormat, ThatOfALeaseWithAnOwnerIsPinned) {
  grant::LeaseTable::Lease lease = some_lease();
  lease.owner = "ann";
  std::string bytes = some_lease_bytes();
  bytes[33] = 4;
  bytes.insert(42, "\0\0\0\3ann"sv);
  EXPECT_EQ(encode_lease(lease), bytes);
  EXPECT_EQ(decode_lease(grant::LeaseId(7), bytes).value(), lease);
  bytes.replace(42, 7, "\0\0\0\0"sv);
  EXPECT_FALSE(decode_lease(grant::LeaseId(7), bytes)) << "no owner is said by the flag alone";
}

TEST(RecordFormat, ThatOfALeaseOfAKeyIsPinned) {
  const grant::LeaseId id(grant::kKeyLeaseIdMin.value() | 7U);
  grant::LeaseTable::Lease lease;
  lease.id = id;
  lease.ttl = lease::Duration(0x1122334455);
  lease.token = grant::FencingToken(kLong);
  lease.stamp = 0x0a0b;
  std::string bytes = "\2";
  bytes += kLongBytes;
  bytes += "\0\0\0\0\0\0\x0a\x0b"sv;
  bytes += "\0\0\0\x11\x22\x33\x44\x55"sv;
  EXPECT_EQ(encode_lease(lease), bytes);
  EXPECT_EQ(decode_lease(id, bytes).value(), lease);
  lease.asked_at_ms = 0x0c0d;
  bytes[0] = 4;
  bytes += "\0\0\0\0\0\0\x0c\x0d"sv;
  EXPECT_EQ(encode_lease(lease), bytes);
  EXPECT_EQ(decode_lease(id, bytes).value(), lease);
  EXPECT_FALSE(decode_lease(grant::LeaseId(7), bytes)) << "that of a client's lease is another one";
  bytes.replace(25, 8, "\0\0\0\0\0\0\0\0"sv);
  EXPECT_FALSE(decode_lease(id, bytes)) << "no end is said by the format alone";
}

TEST(RecordFormat, ThatOfATableOfLeasesIsPinned) {
  grant::LeaseTable table;
  table.restore_newest(grant::LeaseId(kLong), 0x0a0b0c);
  ASSERT_TRUE(table.restore(some_lease(), {"a", "bc"}));
  std::string out = "<";
  put_leases(out, table);
  std::string bytes = "<";
  bytes += kLongBytes;
  bytes += "\0\0\0\0\0\x0a\x0b\x0c"sv;
  bytes += "\0\0\0\1"sv;
  bytes += "\0\0\0\0\0\0\0\7"sv;
  bytes += "\0\0\0\x34"sv;
  bytes += some_lease_bytes();
  bytes += "\0\0\0\2\0\0\0\1a\0\0\0\2bc"sv;
  EXPECT_EQ(out, bytes);
}

TEST(RecordFormat, ThatOfAValueIsPinned) {
  Value value;
  value.create_revision = 1;
  value.mod_revision = kLong;
  value.version = 3;
  const std::string numbers = std::string("\0\0\0\0\0\0\0\1"sv) + std::string(kLongBytes) +
                              std::string("\0\0\0\0\0\0\0\3"sv);
  EXPECT_EQ(encode_value_head(value), "\1" + numbers);
  value.lease = grant::LeaseId(kLong);
  EXPECT_EQ(encode_value_head(value), "\2" + numbers + std::string(kLongBytes));
  value.bytes = Bytes(std::string_view("text"));
  const Value read = decode_value(encode_value_head(value) + "text").value();
  EXPECT_EQ(read.bytes, value.bytes);
  EXPECT_EQ(read.mod_revision, kLong);
  EXPECT_EQ(read.lease, value.lease);
}

TEST(RecordFormat, ThatOfAnArchiveIsPinned) {
  ArchiveHead head;
  head.cluster_id = kLong;
  head.applied = 5;
  head.revision = 4;
  head.keys = 3;
  head.files = {{"CURRENT", 16}, {"MANIFEST-000005", 0x1234}};
  const std::string bytes = encode_head(head);
  std::string expected = "LHSNAP\r\n\1";
  expected += "\0\0\0\x63"sv;
  expected += kLongBytes;
  expected += "\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\3"sv;
  expected += "\0\0\0\2"sv;
  expected += "\0\0\0\7CURRENT\0\0\0\0\0\0\0\x10"sv;
  expected += "\0\0\0\x0fMANIFEST-000005\0\0\0\0\0\0\x12\x34"sv;
  expected += "~\xb5\x41\x64";
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(block_check(2, kLong, "block"), 3493645284U);
}

}  // namespace
}  // namespace leasehold::kv
