// Threads for kernels: the OpenMP runtime of libtorch itself, reached without linking to a runtime. A process thus
// never has two sets of threads which compete for the cores.
#pragma once

#include <cstdint>
#include <memory>

namespace cresset::bridge {

// Runs body(context, thread) for thread in [0, threads), on as many threads as the runtime grants; each index exactly
// once. `body` must not throw and must not use tensors (thread-local dispatch state is not carried over).
void run_on_threads(int threads, void (*body)(void* context, int thread), void* context);

// Divides [0, count) into at most one range per thread, each with at least `grain` elements where there are several.
// Runs body(context, begin, end) on each range as above. Inside a parallel region of ATen, or with a single thread,
// everything runs on this thread. at::parallel_for is no alternative: its body is in torch's headers, and compiled
// without OpenMP, as here, it uses a single thread.
void run_on_ranges(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                   void* context);

template <class Body>
void run_on_ranges(int64_t count, int64_t grain, const Body& body) {
  run_on_ranges(
      count, grain, [](void* context, int64_t begin, int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// Number of elements worth a thread.
constexpr int64_t kElementsOfTask = 16 * 1024;

// False when no OpenMP runtime was found: then everything runs on the calling thread.
bool threads_available();

}  // namespace cresset::bridge
