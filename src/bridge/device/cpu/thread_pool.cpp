#include "bridge/device/cpu/thread_pool.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>

namespace cresset::bridge {
namespace {

// The entry points which compilers call for "#pragma omp parallel"; every OpenMP runtime on Linux has them.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread_num)() = nullptr;
  int (*num_threads)() = nullptr;
};

OpenMp find_openmp() {
  OpenMp found;
  // libtorch_cpu's own dependency comes first: a lookup through its handle covers the libraries linked to it.
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  for (void* handle : {torch, RTLD_DEFAULT}) {
    found.parallel = reinterpret_cast<decltype(found.parallel)>(dlsym(handle, "GOMP_parallel"));
    found.thread_num = reinterpret_cast<decltype(found.thread_num)>(dlsym(handle, "omp_get_thread_num"));
    found.num_threads = reinterpret_cast<decltype(found.num_threads)>(dlsym(handle, "omp_get_num_threads"));
    if (found.parallel != nullptr && found.thread_num != nullptr && found.num_threads != nullptr) return found;
  }
  return {};
}

const OpenMp& openmp() {
  static const OpenMp found = find_openmp();
  return found;
}

struct Team {
  int threads;
  void (*body)(void*, int);
  void* context;
};

void team_body(void* data) {
  const Team& team = *static_cast<const Team*>(data);
  const int granted = openmp().num_threads();
  for (int thread = openmp().thread_num(); thread < team.threads; thread += granted) team.body(team.context, thread);
}

}  // namespace

bool threads_available() { return openmp().parallel != nullptr; }

void run_on_threads(int threads, void (*body)(void* context, int thread), void* context) {
  if (threads <= 1 || !threads_available()) {
    for (int thread = 0; thread < threads; ++thread) body(context, thread);
    return;
  }
  Team team{threads, body, context};
  // 0: the full team, always. Teams of varying size make libgomp start and stop threads at every region.
  openmp().parallel(team_body, &team, 0, 0);
}

void run_on_ranges(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                   void* context) {
  if (count <= 0) return;
  const int64_t most = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t threads = std::max<int64_t>(1, std::min(most, count / std::max<int64_t>(grain, 1)));
  if (threads == 1) return body(context, 0, count);
  struct Job {
    int64_t count, chunk;
    void (*body)(void*, int64_t, int64_t);
    void* context;
  } job{count, (count + threads - 1) / threads, body, context};
  run_on_threads(
      static_cast<int>(threads),
      [](void* data, int thread) {
        const Job& job = *static_cast<const Job*>(data);
        const int64_t begin = thread * job.chunk, end = std::min(begin + job.chunk, job.count);
        if (begin < end) job.body(job.context, begin, end);
      },
      &job);
}

}  // namespace cresset::bridge
