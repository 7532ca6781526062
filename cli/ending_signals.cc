#include <leasehold/cli/ending_signals.h>

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <ctime>

namespace leasehold::cli {
namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

EndingSignals::EndingSignals() {
  // A parent that waits for no children may have left it ignored; then this process could not wait
  // for its child either.
  std::signal(SIGCHLD, SIG_DFL);
  sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    // As nohup and a shell without job control leave them: they would come if they were blocked.
    if (!is_ignored(number)) sigaddset(&set_, number);
  }
  sigset_t blocked = set_;
  // These stay blocked: a process that the terminal has stopped cannot stop a command in time.
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) sigaddset(&blocked, number);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

int EndingSignals::next(lease::Duration wait) const {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(wait);
  const timespec time{whole.count(), (wait - whole).count()};
  const int number = sigtimedwait(&set_, nullptr, &time);
  return number > 0 ? number : 0;
}

int EndingSignals::next_ending(lease::Duration wait) const {
  int number = next(wait);
  while (number == SIGCHLD) number = next(lease::Duration(0));
  return number;
}

}  // namespace leasehold::cli
