// The parts of a transaction, encoded one by one as they come.
#include <leasehold/base/coding.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/command_limits.h>

#include <string>
#include <utility>
#include <variant>

namespace leasehold::kv {

Result<void> TransactionBuilder::add(std::string_view piece, std::size_t pieces, std::string& to) {
  if (pieces >= kOperationsMax) {
    return limit_error("the number of parts of a transaction", pieces + 1, kOperationsMax);
  }
  // Format, type and the two counts come before the pieces.
  const std::size_t whole = 10 + watched_bytes_.size() + operation_bytes_.size() + piece.size();
  if (whole > kCommandBytesMax) {
    return limit_error("a transaction's length in bytes", whole, kCommandBytesMax);
  }
  to.append(piece);
  return {};
}

Result<void> TransactionBuilder::add(const Operation& operation) {
  const auto encoded = std::visit([](const auto& o) { return encode_command(o); }, operation);
  if (!encoded) return encoded.error();
  std::string piece;
  BigWriter(piece).sized(encoded.value().view());
  if (auto added = add(piece, operations_, operation_bytes_); !added) return added;
  ++operations_;
  return {};
}

Result<void> TransactionBuilder::watch(const Watched& watched) {
  if (auto checked = check_key(watched.key); !checked) return checked;
  std::string piece;
  BigWriter to(piece);
  to.sized(watched.key);
  to.u64(watched.mod_revision);
  if (auto added = add(piece, watched_, watched_bytes_); !added) return added;
  ++watched_;
  return {};
}

Bytes TransactionBuilder::finish() const {
  std::string out;
  out.reserve(10 + watched_bytes_.size() + operation_bytes_.size());
  BigWriter to(out);
  to.u8(kCommandFormat);
  to.u8(kTransactionType);
  to.u32(static_cast<std::uint32_t>(watched_));
  to.bytes(watched_bytes_);
  to.u32(static_cast<std::uint32_t>(operations_));
  to.bytes(operation_bytes_);
  return Bytes(std::move(out));
}

}  // namespace leasehold::kv
