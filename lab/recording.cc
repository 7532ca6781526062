#include <leasehold/lab/recording.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace leasehold::lab {
namespace {

using story::Record;

/// Stands once in the page; what is recorded comes between its two tags.
std::string place_of_recording() {
  return fmt::format("<script id=\"recording\" type=\"application/x-ndjson\" data-version=\"{}\">",
                     story::kTraceVersion);
}

Error too_much(const std::string& what) {
  return Error{ErrorCode::invalid_argument,
               what + "; record less, with --from and --until of the command that wrote it"};
}

std::size_t lanes_of(const std::vector<Record>& records) {
  std::set<std::pair<raft::GroupId, raft::NodeId>> lanes;
  for (const Record& record : records) {
    const raft::GroupId group = std::max(record.group, raft::GroupId(1));
    for (const raft::NodeId node : {record.node, record.peer}) {
      if (node != raft::kNobody) lanes.insert({group, node});
    }
    if (lanes.size() > kRecordingLanesMax) break;
  }
  return lanes.size();
}

/// In the text of a script element a < may begin its end, and means the same as an escape in JSON.
void put_escaped(std::string& out, const std::string& line) {
  for (const char c : line) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
}

}  // namespace

Result<std::string> page_with_recording(const std::string& page,
                                        const std::vector<Record>& records) {
  const std::string place = place_of_recording();
  const std::size_t begin = page.find(place + "</script>");
  if (begin == std::string::npos || page.find(place, begin + 1) != std::string::npos) {
    return Error{ErrorCode::malformed,
                 fmt::format("is no page of the lab that can hold a trace of version {}: take the "
                             "one that `make lab` builds from the source of this program",
                             story::kTraceVersion)};
  }
  if (records.size() > kRecordingRecordsMax) {
    return too_much(fmt::format("the trace has {} records, and a page shows at most {}",
                                records.size(), kRecordingRecordsMax));
  }
  const std::size_t lanes = lanes_of(records);
  if (lanes == 0) return Error{ErrorCode::invalid_argument, "the trace tells of no node"};
  if (lanes > kRecordingLanesMax) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the trace has more than {} replicas, and a page has a lane for each",
                             kRecordingLanesMax)};
  }
  const std::size_t middle = begin + place.size();
  std::string out = page.substr(0, middle);
  for (const Record& record : records) {
    put_escaped(out, story::encode_record(record));
    out += '\n';
    if (out.size() > middle + kRecordingBytesMax) {
      return too_much(fmt::format("the trace has more than {} bytes", kRecordingBytesMax));
    }
  }
  return out.append(page, middle);
}

}  // namespace leasehold::lab
