#include "simt_threads.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "base/check.h"

// Leaves the current stack, whose place it writes to *from, for the stack at `to`. makecontext and swapcontext do the
// same with system calls, and tests switch millions of times.
extern "C" void cresset_simt_switch(void** from, void* to);
asm(R"(
.text
.globl cresset_simt_switch
.hidden cresset_simt_switch
.type cresset_simt_switch, @function
cresset_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cresset_simt_switch, .-cresset_simt_switch
)");

namespace cresset::gpu_simulator {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kWarp = 32;

struct Fiber {
  enum class State : uint8_t { Ready, AtBarrier, AtWarp, Done };
  void* place = nullptr;  // of its stack, while others run
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  State state = State::Done;
  uint32_t x = 0, y = 0;
  uint32_t number = 0;
  bool odd = false;            // selects the slot of the next shuffle
  uint32_t slots[2] = {0, 0};  // values shown to other threads by shuffles
};

// The current block. Only a single block runs at a time in the process.
struct Block {
  uint32_t x = 0, y = 0, width = 1, height = 1;
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from block to block
  size_t threads = 0;                          // of them in use
  Fiber* current = nullptr;
  void* scheduler = nullptr;
  const SimtFunction* function = nullptr;
  int64_t* parameters = nullptr;
};
Block block;

void yield(Fiber::State state) {
  Fiber* const self = block.current;
  self->state = state;
  cresset_simt_switch(&self->place, block.scheduler);
}

uint32_t tid_x() { return block.current->x; }
uint32_t tid_y() { return block.current->y; }
uint32_t ntid_x() { return block.width; }
uint32_t ntid_y() { return block.height; }
uint32_t ctaid_x() { return block.x; }
uint32_t ctaid_y() { return block.y; }
void barrier() { yield(Fiber::State::AtBarrier); }
void warp_barrier(uint32_t) { yield(Fiber::State::AtWarp); }

// The value shown by the thread of that number.
uint32_t shown(uint32_t value, uint32_t partner) {
  Fiber* const self = block.current;
  const bool slot = self->odd;
  self->odd = !slot;
  self->slots[slot] = value;
  yield(Fiber::State::AtWarp);
  CRESSET_CHECK(partner < block.threads, "a shuffle reads a thread that does not exist");
  return block.fibers[partner]->slots[slot];
}
uint32_t shuffle(uint32_t, uint32_t value, uint32_t distance, uint32_t) {
  return shown(value, block.current->number ^ distance);
}
uint32_t shuffle_up(uint32_t, uint32_t value, uint32_t distance, uint32_t) {
  const uint32_t self = block.current->number;
  return shown(value, self % kWarp < distance ? self : self - distance);
}
uint32_t shuffle_index(uint32_t, uint32_t value, uint32_t index, uint32_t) {
  return shown(value, block.current->number / kWarp * kWarp + index % kWarp);
}

// As exact as the machine's function: it has 22 bits.
float exp2_approx(float x) { return std::exp2(x) * (1 + 0x1p-23f); }

void fiber_main() {
  block.function->run(block.parameters);
  yield(Fiber::State::Done);
}

// A stack that begins with fiber_main, as a call would: its end is a multiple of 16, and a return address lies there.
void* fresh_stack(char* stack) {
  constexpr size_t kSaved = 6;  // registers
  auto end = reinterpret_cast<uintptr_t>(stack + kStackBytes) & ~uintptr_t{15};
  auto* words = reinterpret_cast<uintptr_t*>(end) - 2 - kSaved;
  std::fill(words, words + 2 + kSaved, uintptr_t{0});
  words[kSaved] = reinterpret_cast<uintptr_t>(&fiber_main);
  return words;
}

void prepare_fibers(size_t count) {
  while (block.fibers.size() < count) block.fibers.push_back(std::make_unique<Fiber>());
  block.threads = count;
  for (size_t i = 0; i < count; ++i) {
    Fiber& f = *block.fibers[i];
    f.number = static_cast<uint32_t>(i);
    f.x = f.number % block.width;
    f.y = f.number / block.width;
    f.state = Fiber::State::Ready;
    f.odd = false;
    f.place = fresh_stack(f.stack.get());
  }
}

// Releases the fibers begin..end if all of them that still run have the state.
bool release_all(size_t begin, size_t end, Fiber::State state) {
  const auto& fibers = block.fibers;
  bool some = false;
  for (size_t i = begin; i < end; ++i) {
    if (fibers[i]->state != Fiber::State::Done && fibers[i]->state != state) return false;
    some |= fibers[i]->state == state;
  }
  if (!some) return false;
  for (size_t i = begin; i < end; ++i)
    if (fibers[i]->state == state) fibers[i]->state = Fiber::State::Ready;
  return true;
}

// Releases the threads whose company is complete. False: no thread can go on.
bool release() {
  bool any = release_all(0, block.threads, Fiber::State::AtBarrier);
  for (size_t warp = 0; warp < block.threads; warp += kWarp)
    any |= release_all(warp, std::min<size_t>(warp + kWarp, block.threads), Fiber::State::AtWarp);
  return any;
}

std::string run_fibers(std::mt19937& random) {
  std::vector<Fiber*> order;
  for (size_t i = 0; i < block.threads; ++i) order.push_back(block.fibers[i].get());
  std::shuffle(order.begin(), order.end(), random);
  do {
    std::reverse(order.begin(), order.end());
    for (Fiber* f : order) {
      if (f->state != Fiber::State::Ready) continue;
      block.current = f;
      cresset_simt_switch(&block.scheduler, f->place);
    }
  } while (release());
  for (Fiber* f : order)
    if (f->state != Fiber::State::Done) return "threads wait for others that never come";
  return "";
}

// Threads which wait for no other thread run on the caller's stack, without fibers.
void run_alone() {
  static Fiber alone;
  block.current = &alone;
  for (alone.y = 0; alone.y < block.height; ++alone.y)
    for (alone.x = 0; alone.x < block.width; ++alone.x) block.function->run(block.parameters);
}

template <class F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const SimtIntrinsic kSimtIntrinsics[] = {
    {"llvm.nvvm.read.ptx.sreg.tid.x", "simt_tid_x", address_of(&tid_x), true},
    {"llvm.nvvm.read.ptx.sreg.tid.y", "simt_tid_y", address_of(&tid_y), true},
    {"llvm.nvvm.read.ptx.sreg.ntid.x", "simt_ntid_x", address_of(&ntid_x), true},
    {"llvm.nvvm.read.ptx.sreg.ntid.y", "simt_ntid_y", address_of(&ntid_y), true},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", "simt_ctaid_x", address_of(&ctaid_x), true},
    {"llvm.nvvm.read.ptx.sreg.ctaid.y", "simt_ctaid_y", address_of(&ctaid_y), true},
    {"llvm.nvvm.ex2.approx.f", "simt_exp2", address_of(&exp2_approx), true},
    {"llvm.nvvm.barrier0", "simt_barrier", address_of(&barrier), false},
    {"llvm.nvvm.bar.warp.sync", "simt_warp", address_of(&warp_barrier), false},
    {"llvm.nvvm.shfl.sync.bfly.i32", "simt_shuffle", address_of(&shuffle), false},
    {"llvm.nvvm.shfl.sync.up.i32", "simt_shuffle_up", address_of(&shuffle_up), false},
    {"llvm.nvvm.shfl.sync.idx.i32", "simt_shuffle_index", address_of(&shuffle_index), false},
    {nullptr, nullptr, nullptr, false},
};

std::string run_grid(const SimtFunction& function, const runtime::LaunchConfig& config, int64_t* parameters,
                     uint32_t seed) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::mt19937 random(seed);
  block.function = &function;
  block.parameters = parameters;
  block.width = config.block[0];
  block.height = config.block[1];
  for (block.y = config.grid[1]; block.y-- > 0;) {
    for (block.x = 0; block.x < config.grid[0]; ++block.x) {
      function.poison(config.shared_bytes);
      if (!function.waits) {
        run_alone();
        continue;
      }
      prepare_fibers(size_t{block.width} * block.height);
      if (std::string wrong = run_fibers(random); !wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace cresset::gpu_simulator
