// Trace files: one JSON object a line, one record an object. docs/formats/trace.md describes them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::story {

/// The version that is written, and the only one that is read.
inline constexpr std::uint64_t kTraceVersion = 1;
/// Records of one trace file that are read.
inline constexpr std::size_t kTraceRecordsMax = 5'000'000;

/// One line, without its end. Members that are zero or empty are left out.
std::string encode_record(const Record& record);
/// The only decoder. It refuses what encode_record() would not write; members may be in any order.
Result<Record> decode_record(const std::string& line);
/// A whole file. It begins with a `run` record of a version that is known. Errors name the line.
Result<std::vector<Record>> decode_trace(const std::string& name, const std::string& text);

}  // namespace leasehold::story
