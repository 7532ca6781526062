// What a command does with the records of a run: tells them, writes them, or both.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>
#include <leasehold/story/teller.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace leasehold::story {

struct TellingOptions {
  bool story = false;
  bool full = false;  ///< the story tells every record
  std::string trace;  ///< the file to write; empty: none
  /// Only this part. The trace also keeps the earlier records that it builds on: roles, promises,
  /// leases.
  std::optional<Duration> from;
  std::optional<Duration> until;

  bool wanted() const { return story || !trace.empty(); }
};

/// The options of the command line that the commands share: for their usage.
extern const char* const kTellingUsage;

/// Takes one option, and its value, at `at`, which moves to the last word of the option. None: it
/// is not one of these. Otherwise what is wrong with it; empty if nothing is.
std::optional<std::string> take_telling_option(const std::vector<std::string>& words,
                                               std::size_t& at, TellingOptions& options);

class Telling {
 public:
  explicit Telling(TellingOptions options);

  /// Creates the trace file.
  Result<void> open();
  void take(const Record& record);
  /// Tells what was summed up, and closes the trace.
  Result<void> finish();

 private:
  TellingOptions options_;
  bool inside_ = false;
  bool over_ = false;
  Teller teller_;
  std::unique_ptr<std::ostream> trace_;  ///< none if no trace is asked for
};

}  // namespace leasehold::story
