// Tells records in words: which node promised what to which leader until when, which
// acknowledgement extended a lease, which vote was refused and why.
#pragma once

#include <leasehold/story/record.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::story {

/// `brief` sums up what is routine (renewals, extensions, commits, reads) between two events that
/// are not, and leaves messages out. `full` tells every record.
enum class Detail : std::uint8_t { brief, full };

/// Turns records, in the order of their time, into lines. Remembers promises and leases, to say
/// until when a refusing voter is bound, and to tell the end of a window that was not extended.
class Teller {
 public:
  using Line = std::function<void(const std::string&)>;

  /// Times are aligned at `time_columns`; 11 hold a hundred seconds.
  explicit Teller(Line line, std::size_t time_columns = 11)
      : line_(std::move(line)), time_columns_(time_columns) {}

  void set_detail(Detail detail);
  void tell(const Record& record);
  /// True time has moved on to `now`: windows may have ended.
  void pass(Duration now);
  /// Tells what was summed up so far.
  void flush();

 private:
  struct Window {
    Duration until{0};
    NodeId peer;
    bool open = false;
  };
  struct Routine {
    std::uint64_t times = 0;
    Record last;
  };

  /// The replica that a record is about.
  using Who = std::pair<NodeId, GroupId>;
  static Who who(const Record& record) { return {record.node, record.group}; }

  void say(Duration at, const std::string& text);
  void remember(const Record& record);
  bool sum_up(const Record& record);
  bool left_out(const Record& record) const;
  std::string refusal(const Record& record) const;
  std::string sentence(const Record& record) const;

  Line line_;
  std::size_t time_columns_;
  Detail detail_ = Detail::brief;
  std::map<Who, Window> promises_;
  std::map<Who, Window> leases_;

  Duration last_{0};
  std::map<Who, Routine> extended_;
  std::map<Who, Routine> renewed_;
  std::map<std::string, std::uint64_t> answers_;
  std::map<GroupId, Index> committed_;
  std::map<GroupId, Index> told_committed_;
};

}  // namespace leasehold::story
