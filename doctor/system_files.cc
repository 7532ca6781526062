#include <leasehold/doctor/system_files.h>

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace leasehold::doctor {
namespace {

/// More than any of these files has.
constexpr std::size_t kTextBytesMax = std::size_t{4} << 20U;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Spaces in paths are "\040".
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool contains(const std::string& point, const std::string& folder) {
  if (point == "/") return true;
  if (folder.compare(0, point.size(), point) != 0) return false;
  return folder.size() == point.size() || folder[point.size()] == '/';
}

}  // namespace

std::string read_text(const std::string& root, const std::string& path) {
  std::ifstream file(root + path);
  std::string text;
  for (char c = 0; text.size() < kTextBytesMax && file.get(c);) text += c;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + begin, end, number).ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> read_number(const std::string& root, const std::string& path) {
  return number_in(read_text(root, path));
}

std::optional<std::uint64_t> number_of(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) == 0) return number_in(line.substr(key.size()));
  }
  return std::nullopt;
}

// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
std::optional<Mount> mount_of(const std::string& mountinfo, const std::string& folder) {
  std::optional<Mount> found;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    std::size_t dash = 6;
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 3 >= words.size()) continue;
    const std::string point = unescaped(words[4]);
    // The last one of a point hides those before it.
    if (!contains(point, folder) || (found && point.size() < found->point.size())) continue;
    found = Mount{point, words[dash + 1], fmt::format("{},{}", words[5], words[dash + 3])};
  }
  return found;
}

// cpu  user nice system idle iowait irq softirq steal guest guest_nice
ProcessorTime processor_time(const std::string& root) {
  constexpr std::size_t kStolen = 8;
  ProcessorTime time;
  const std::string text = read_text(root, "proc/stat");
  const std::vector<std::string> words = words_of(text.substr(0, text.find('\n')));
  for (std::size_t i = 1; i <= kStolen && i < words.size(); ++i) {
    const std::uint64_t ticks = number_in(words[i]).value_or(0);
    time.all += ticks;
    if (i == kStolen) time.stolen = ticks;
  }
  return time;
}

// 1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
std::uint64_t lock_holder(const std::string& locks, std::uint64_t device_major,
                          std::uint64_t device_minor, std::uint64_t inode) {
  const std::string place = fmt::format("{:02x}:{:02x}:{}", device_major, device_minor, inode);
  std::istringstream lines(locks);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    // A line with "->" waits for the lock.
    if (words.size() < 6 || words[1] != "FLOCK" || words[5] != place) continue;
    return number_in(words[4]).value_or(0);
  }
  return 0;
}

}  // namespace leasehold::doctor
