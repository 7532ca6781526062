// A table of the lengths for all beginnings of both values, of which only one row is kept, and for
// the way back one bit of each cell.
#include <leasehold/kv/common_part.h>

#include <algorithm>

namespace leasehold::kv {
namespace {

/// For the beginnings of `i` and `j` bytes that end differently: whether to go on with a byte less
/// of `a`, else of `b`.
class WayBack {
 public:
  WayBack(std::size_t a, std::size_t b) : width_(b), bits_(a * b) {}
  void note_shorter_a(std::size_t i, std::size_t j) { bits_[at(i, j)] = true; }
  bool shorter_a(std::size_t i, std::size_t j) const { return bits_[at(i, j)]; }

 private:
  std::size_t at(std::size_t i, std::size_t j) const { return (i - 1) * width_ + (j - 1); }

  std::size_t width_;
  std::vector<bool> bits_;
};

std::uint64_t fill_table(std::string_view a, std::string_view b, WayBack* way) {
  std::vector<std::uint32_t> row(b.size() + 1);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::uint32_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::uint32_t above = row[j];
      if (a[i - 1] == b[j - 1]) {
        row[j] = diagonal + 1;
      } else if (above > row[j - 1]) {
        if (way != nullptr) way->note_shorter_a(i, j);
      } else {
        row[j] = row[j - 1];
      }
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

CommonPart common_part(std::string_view a, std::string_view b, bool with_text) {
  CommonPart part;
  if (a.empty() || b.empty()) return part;
  if (!with_text) {
    part.length = fill_table(a, b, nullptr);
    return part;
  }
  WayBack way(a.size(), b.size());
  part.length = fill_table(a, b, &way);
  std::size_t i = a.size();
  std::size_t j = b.size();
  bool in_run = false;
  while (i > 0 && j > 0) {
    if (a[i - 1] == b[j - 1]) {
      --i;
      --j;
      part.text.push_back(a[i]);
      if (!in_run) part.runs.push_back({i, i, j, j});
      part.runs.back().a_first = i;
      part.runs.back().b_first = j;
      in_run = true;
    } else {
      way.shorter_a(i, j) ? --i : --j;
      in_run = false;
    }
  }
  std::reverse(part.text.begin(), part.text.end());
  return part;
}

}  // namespace leasehold::kv
