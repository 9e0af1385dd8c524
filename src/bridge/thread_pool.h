// Threads for kernels: the very OpenMP runtime that libtorch runs on, reached without linking to one, so that a process
// never has two sets of threads fighting over the cores.
#pragma once

namespace cresset::bridge {

// Runs body(context, thread) for thread in [0, threads), on as many threads as the runtime grants; each index exactly
// once. `body` must not throw and must not use tensors (thread-local dispatch state is not carried over).
void run_on_threads(int threads, void (*body)(void* context, int thread), void* context);

// False when no OpenMP runtime was found: then everything runs on the calling thread.
bool threads_available();

}  // namespace cresset::bridge
