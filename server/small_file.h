// Small files of text in a node's directory, which a person can read: a heading with the format,
// then lines.
#pragma once

#include <leasehold/base/result.h>

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

struct SmallFile {
  std::string path;
  std::string_view heading;  ///< the first line up to its format, which is 1
  std::string_view remedy;   ///< what to do when it is damaged
};

/// The lines, each with its end. None: no file. Errors: corrupted, unsupported_format, io.
Result<std::optional<std::string>> load_lines(const SmallFile& file);

/// Takes the place of the file at once; durable on return. Errors: io.
Result<void> save_lines(const SmallFile& file, std::string_view lines);

}  // namespace leasehold::server
