// What was asked of some keys, and what was answered: a history for `leasehold check`
// (docs/formats/history.md).
#pragma once

#include <leasehold/base/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace leasehold::bench {

/// Records the operations of one process on its first keys, all of them: linearizability is a
/// property of each key alone, so whole keys are a sound sample of a load.
///
/// A value is known by its first bytes. Each that is written to a judged key begins with a number
/// that no other process writes either, so that histories of several processes can be joined. To
/// record takes less than 100 ns, and memory; the file is written when nothing is measured any
/// more. One thread. Instants are of monotonic_ns(), one clock for all processes of a machine.
class Recorder {
 public:
  static constexpr std::size_t kFrontBytes = 16;
  /// More take the checker too long, and too much memory: write_file() refuses them.
  static constexpr std::size_t kOperationsMax = 10'000'000;
  static constexpr std::uint64_t kKeysUsual = 16;
  using Front = std::array<char, kFrontBytes>;
  /// Of an operation in the record.
  using Place = std::uint32_t;
  static constexpr Place kNowhere = ~Place{0};

  /// Judges the keys below `keys`. Errors: io, the file cannot be written.
  static Result<std::unique_ptr<Recorder>> create(const std::string& path, std::uint64_t keys);

  bool judges(std::uint64_t key) const { return key < keys_; }
  std::uint64_t keys() const { return keys_; }
  /// The first bytes of the next value that is written to a judged key.
  Front next_front();

  /// Before it is sent. An operation that nothing more is said of has no answer: a read is left
  /// out, and of a write nobody knows. `client`: a number for people.
  Place begin_read(std::uint64_t client, std::uint64_t key, std::uint64_t now);
  Place begin_write(std::uint64_t client, std::uint64_t key, const Front& front, std::uint64_t now);

  // When the answer is there. None of these does anything at kNowhere.

  void read(Place place, std::string_view value, std::uint64_t now);
  /// There is no such key.
  void read_nothing(Place place, std::uint64_t now);
  void wrote(Place place, std::uint64_t now);
  /// An error, by its line without the sign: it was certainly not executed, or nobody knows.
  void failed(Place place, std::string_view error);

  std::size_t size() const { return entries_.size(); }
  /// Call it once, last. Errors: io; invalid_argument: there were more than kOperationsMax.
  Result<void> write_file();

 private:
  enum class State : std::uint8_t { under_way, answered, not_executed };
  struct Entry {
    std::uint64_t began = 0;
    std::uint64_t ended = 0;
    Front value{};
    std::uint32_t key = 0;
    std::uint32_t client = 0;
    std::uint8_t value_bytes = 0;
    bool writes = false;
    bool nothing = false;
    State state = State::under_way;
  };

  Recorder(std::string path, std::uint64_t keys);
  Place add(const Entry& entry);
  static void append_line(const Entry& entry, std::string& text);

  std::string path_;
  std::uint64_t keys_;
  std::uint64_t next_;  ///< number of a value
  bool full_ = false;
  std::deque<Entry> entries_;  ///< grows without moving what is there, which would take too long
  std::ofstream file_;
};

}  // namespace leasehold::bench
