// Two threads count in a plain integer. The thread sanitizer has to report it.
#include <cstdio>
#include <thread>

int main() {
  long count = 0;
  const auto work = [&count] {
    for (int i = 0; i < 100000; ++i) ++count;
  };
  std::thread first(work);
  std::thread second(work);
  first.join();
  second.join();
  std::printf("nobody noticed the race; the count is %ld\n", count);
  return 0;
}
