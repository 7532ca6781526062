#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/wire/notice.h>

namespace leasehold::wire {
namespace {

constexpr std::string_view kNoticeMark = "LHND";
constexpr std::string_view kAnswerMark = "LHNA";
constexpr std::string_view kReserved("\0\0\0\0\0\0\0", 7);

}  // namespace

std::string encode_notice(const EndNotice& notice) {
  LEASEHOLD_ASSERT(notice.secret.size() == kSecretBytes);
  std::string out;
  BigWriter to(out);
  to.bytes(kNoticeMark);
  to.u8(kNoticeVersion);
  to.bytes(kReserved);
  to.u64(notice.cluster_id);
  to.u64(notice.ended.id.value());
  to.u64(notice.ended.uuid.high);
  to.u64(notice.ended.uuid.low);
  to.u64(notice.ended.process.place);
  to.u64(notice.ended.process.incarnation.value());
  to.bytes(notice.secret);
  LEASEHOLD_ASSERT(out.size() == kNoticeBytes);
  return out;
}

std::optional<EndNotice> decode_notice(std::string_view datagram) {
  BigReader in(datagram);
  if (in.take(kNoticeMark.size()) != kNoticeMark || in.u8() != kNoticeVersion) return std::nullopt;
  in.take(kReserved.size());
  EndNotice notice;
  notice.cluster_id = in.u64();
  notice.ended.id = raft::NodeId(in.u64());
  notice.ended.uuid.high = in.u64();
  notice.ended.uuid.low = in.u64();
  notice.ended.process.place = in.u64();
  notice.ended.process.incarnation = raft::Incarnation(in.u64());
  notice.secret = in.take(kSecretBytes);
  if (!in.at_end()) return std::nullopt;
  if (notice.ended.process.place == 0 || notice.ended.process.incarnation.value() == 0) {
    return std::nullopt;
  }
  return notice;
}

std::string encode_notice_answer(const raft::Peer& ended, raft::NodeId by) {
  std::string out;
  BigWriter to(out);
  to.bytes(kAnswerMark);
  to.u8(kNoticeVersion);
  to.bytes(kReserved);
  to.u64(ended.id.value());
  to.u64(ended.process.incarnation.value());
  to.u64(by.value());
  LEASEHOLD_ASSERT(out.size() == kAnswerBytes);
  return out;
}

}  // namespace leasehold::wire
