// Threads for kernels: the very OpenMP runtime that libtorch runs on, reached without linking to one, so that a process
// never has two sets of threads fighting over the cores.
#pragma once

#include <cstdint>
#include <memory>

namespace cresset::bridge {

// Runs body(context, thread) for thread in [0, threads), on as many threads as the runtime grants; each index exactly
// once. `body` must not throw and must not use tensors (thread-local dispatch state is not carried over).
void run_on_threads(int threads, void (*body)(void* context, int thread), void* context);

// Cuts [0, count) into at most one range a thread, of at least `grain` each where there are several, and runs
// body(context, begin, end) on each as above. Inside of a parallel region of ATen's, or with one thread, on this thread
// alone. Not at::parallel_for, whose body is in torch's headers: compiled without OpenMP, as we are, it is one
// thread's.
void run_on_ranges(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                   void* context);

template <class Body>
void run_on_ranges(int64_t count, int64_t grain, const Body& body) {
  run_on_ranges(
      count, grain, [](void* context, int64_t begin, int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// Elements that are worth a thread.
constexpr int64_t kElementsOfTask = 16 * 1024;

// False when no OpenMP runtime was found: then everything runs on the calling thread.
bool threads_available();

}  // namespace cresset::bridge
