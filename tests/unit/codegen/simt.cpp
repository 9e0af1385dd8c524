#include "simt.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/check.h"
#include "codegen/cpu/jit.h"
#include "codegen/cpu/target.h"
#include "codegen/nvptx/emit_kernel.h"
#include "codegen/nvptx/emit_math.h"

// Leaves the stack it is called on, whose place it writes to *from, for the one at `to`. What makecontext and
// swapcontext do, without their system calls: tests switch millions of times.
extern "C" void cresset_simt_switch(void** from, void* to);
asm(R"(
.text
.globl cresset_simt_switch
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

namespace cresset::codegen::nvptx {
namespace {

constexpr size_t kStackBytes = 64 * 1024;

using Entry = void (*)(int64_t* parameters);

// One block of threads at a time.
struct Fiber {
  enum class State : uint8_t { Ready, AtBarrier, AtWarp, Done };
  void* place = nullptr;  // of its stack, while others run
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  State state = State::Done;
  uint32_t x = 0, y = 0;
  uint32_t number = 0;
  bool odd = false;            // which of its two slots the next shuffle uses
  uint32_t slots[2] = {0, 0};  // what a shuffle shows to others
};

struct Block {
  uint32_t x = 0, y = 0, width = 1, height = 1, grid_x = 1, grid_y = 1;
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from block to block
  size_t threads = 0;                          // of them in use
  Fiber* current = nullptr;
  void* scheduler = nullptr;
  Entry entry = nullptr;
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
// What the thread of that number shows.
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
  return shown(value, self % 32 < distance ? self : self - distance);
}
uint32_t shuffle_index(uint32_t, uint32_t value, uint32_t index, uint32_t) {
  return shown(value, block.current->number / 32 * 32 + index % 32);
}

// As exact as the machine's function: it has 22 bits.
float exp2_approx(float x) { return std::exp2(x) * (1 + 0x1p-23f); }

void fiber_main() {
  block.entry(block.parameters);
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

struct Replacement {
  llvm::Intrinsic::ID id;
  const char* name;
  void* address;
  bool pure;
};
const Replacement kReplacements[] = {
    {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, "simt_tid_x", reinterpret_cast<void*>(&tid_x), true},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y, "simt_tid_y", reinterpret_cast<void*>(&tid_y), true},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, "simt_ntid_x", reinterpret_cast<void*>(&ntid_x), true},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_y, "simt_ntid_y", reinterpret_cast<void*>(&ntid_y), true},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, "simt_ctaid_x", reinterpret_cast<void*>(&ctaid_x), true},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y, "simt_ctaid_y", reinterpret_cast<void*>(&ctaid_y), true},
    {llvm::Intrinsic::nvvm_ex2_approx_ftz_f, "simt_exp2", reinterpret_cast<void*>(&exp2_approx), true},
    {llvm::Intrinsic::nvvm_barrier0, "simt_barrier", reinterpret_cast<void*>(&barrier), false},
    {llvm::Intrinsic::nvvm_bar_warp_sync, "simt_warp", reinterpret_cast<void*>(&warp_barrier), false},
    {llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, "simt_shuffle", reinterpret_cast<void*>(&shuffle), false},
    {llvm::Intrinsic::nvvm_shfl_sync_up_i32, "simt_shuffle_up", reinterpret_cast<void*>(&shuffle_up), false},
    {llvm::Intrinsic::nvvm_shfl_sync_idx_i32, "simt_shuffle_index", reinterpret_cast<void*>(&shuffle_index), false},
};

void* find(const char* name) {
  for (const Replacement& r : kReplacements)
    if (std::strcmp(r.name, name) == 0) return r.address;
  return nullptr;
}

// Rounded to bf16, as an i16.
llvm::Value* bf16_bits(llvm::IRBuilder<>& ir, llvm::Value* v) {
  llvm::Value* bits = ir.CreateBitCast(v, ir.getInt32Ty());
  llvm::Value* odd = ir.CreateAnd(ir.CreateLShr(bits, 16), 1);
  llvm::Value* rounded = ir.CreateAdd(bits, ir.CreateAdd(odd, ir.getInt32(0x7fff)));
  llvm::Value* kept = ir.CreateSelect(ir.CreateFCmpUNO(v, v), ir.getInt32(0x7fffffff), rounded);
  return ir.CreateTrunc(ir.CreateLShr(kept, 16), ir.getInt16Ty());
}

// A conversion as plain instructions; nullptr: it is none.
llvm::Value* converted(llvm::IRBuilder<>& ir, llvm::CallInst* call) {
  const auto pair = [&](const std::function<llvm::Value*(llvm::Value*)>& one) {
    llvm::Value* low = one(call->getArgOperand(1));
    llvm::Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(low->getType(), 2));
    out = ir.CreateInsertElement(out, low, uint64_t{0});
    return ir.CreateInsertElement(out, one(call->getArgOperand(0)), 1);
  };
  if (const auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
    CRESSET_CHECK(text->getAsmString() == kDivFull, "no such assembly on the host: " + text->getAsmString());
    return ir.CreateFDiv(call->getArgOperand(0), call->getArgOperand(1));
  }
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::nvvm_ff2bf16x2_rn:
      return pair([&](llvm::Value* v) { return bf16_bits(ir, v); });
    case llvm::Intrinsic::nvvm_ff2f16x2_rn:
      return pair([&](llvm::Value* v) { return ir.CreateFPTrunc(v, ir.getHalfTy()); });
    case llvm::Intrinsic::nvvm_f2bf16_rn:
      return bf16_bits(ir, call->getArgOperand(0));
    default:
      return nullptr;
  }
}

void replace_conversions(llvm::Module& module) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& b : f)
      for (llvm::Instruction& i : b)
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) calls.push_back(call);
  for (llvm::CallInst* call : calls) {
    llvm::IRBuilder<> ir(call);
    llvm::Value* v = converted(ir, call);
    if (v == nullptr) continue;
    call->replaceAllUsesWith(ir.CreateBitCast(v, call->getType()));
    call->eraseFromParent();
  }
}

// Whether threads wait for each other.
bool replace_intrinsics(llvm::Module& module) {
  replace_conversions(module);
  bool waits = false;
  for (const Replacement& r : kReplacements) {
    llvm::Function* intrinsic = module.getFunction(llvm::Intrinsic::getName(r.id));
    if (intrinsic == nullptr) continue;
    auto* host = llvm::Function::Create(intrinsic->getFunctionType(), llvm::Function::ExternalLinkage, r.name, module);
    if (r.pure) host->setDoesNotAccessMemory();
    host->setDoesNotThrow();
    if (r.pure) host->setWillReturn();
    for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users()))
      llvm::cast<llvm::CallInst>(user)->setCalledFunction(host);
    intrinsic->eraseFromParent();
    waits |= !r.pure;
  }
  for (const llvm::Function& f : module)
    CRESSET_CHECK(f.use_empty() || !f.getName().starts_with("llvm.nvvm."),
                  "no such intrinsic on the host: " + f.getName().str());
  return waits;
}

// Dynamic shared memory is an array as large as a launch may ask for.
void give_dynamic_memory(llvm::Module& module) {
  llvm::GlobalVariable* row = module.getGlobalVariable("row");
  if (row == nullptr) return;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), kMostSharedBytes);
  auto* memory = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                          llvm::Constant::getNullValue(type), "dynamic", nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kShared);
  memory->setAlignment(llvm::Align(16));
  row->replaceAllUsesWith(memory);
  row->eraseFromParent();
}

// A function of the parameters as they lie in memory. Without any it fills shared memory with garbage.
void add_wrapper(llvm::Module& module, llvm::Function* kernel, const std::string& name) {
  llvm::IRBuilder<> ir(module.getContext());
  auto* type = llvm::FunctionType::get(ir.getVoidTy(), {ir.getPtrTy()}, false);
  auto* wrapper = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  auto block_of = [&](const char* what) { return llvm::BasicBlock::Create(module.getContext(), what, wrapper); };
  llvm::BasicBlock *entry = block_of("entry"), *poison = block_of("poison"), *go = block_of("go");
  ir.SetInsertPoint(entry);
  ir.CreateCondBr(ir.CreateIsNull(wrapper->getArg(0)), poison, go);
  ir.SetInsertPoint(poison);
  give_dynamic_memory(module);
  for (llvm::GlobalVariable& shared : module.globals()) {
    if (shared.getAddressSpace() != kShared) continue;
    shared.setInitializer(llvm::Constant::getNullValue(shared.getValueType()));
    const uint64_t bytes = module.getDataLayout().getTypeAllocSize(shared.getValueType());
    ir.CreateMemSet(&shared, ir.getInt8(0x5a), bytes, llvm::Align(8));
  }
  ir.CreateRetVoid();
  ir.SetInsertPoint(go);
  std::vector<llvm::Value*> arguments;
  for (const llvm::Argument& argument : kernel->args())
    arguments.push_back(ir.CreateLoad(argument.getType(),
                                      ir.CreateConstGEP1_64(ir.getInt64Ty(), wrapper->getArg(0), arguments.size())));
  ir.CreateCall(kernel, arguments);
  ir.CreateRetVoid();
}

cpu::Jit& jit() {
  static cpu::Jit* jit = [] {
    auto* made = new cpu::Jit(cpu::host_target(0).triple);
    made->set_resolver(&find);
    return made;
  }();
  return *jit;
}

cpu::ObjectCompiler& compiler() {
  static cpu::ObjectCompiler* compiler = new cpu::ObjectCompiler(cpu::host_target(0));
  return *compiler;
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

// Lets those go on whose company is complete. False: nobody can.
bool release() {
  constexpr size_t kWarp = 32;
  const auto& fibers = block.fibers;
  using State = Fiber::State;
  bool any = false;
  const auto all = [&](size_t begin, size_t end, State state) {
    bool some = false;
    for (size_t i = begin; i < end; ++i) {
      if (fibers[i]->state != State::Done && fibers[i]->state != state) return false;
      some |= fibers[i]->state == state;
    }
    if (!some) return false;
    for (size_t i = begin; i < end; ++i)
      if (fibers[i]->state == state) fibers[i]->state = State::Ready;
    return true;
  };
  any |= all(0, block.threads, State::AtBarrier);
  for (size_t warp = 0; warp < block.threads; warp += kWarp)
    any |= all(warp, std::min(warp + kWarp, block.threads), State::AtWarp);
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

}  // namespace

struct SimtKernel::Code {
  Entry entry = nullptr;
  bool waits = false;
};

SimtKernel::SimtKernel(const loop::Kernel& kernel, const Schedule& schedule) {
  for (int v = 0; v < kVariants; ++v) {
    if (!schedule.has(static_cast<Variant>(v))) continue;
    llvm::LLVMContext context;
    llvm::Module module("simt", context);
    compiler().prepare(module);
    emit_kernel(kernel, schedule, static_cast<Variant>(v), "device", module);
    auto code = std::make_unique<Code>();
    llvm::Function* device = module.getFunction("device");
    device->setCallingConv(llvm::CallingConv::C);
    device->setLinkage(llvm::Function::InternalLinkage);
    module.eraseNamedMetadata(module.getNamedMetadata("nvvm.annotations"));
    code->waits = replace_intrinsics(module);
    add_wrapper(module, device, "kernel");
    const std::string object = compiler().compile(module);
    const runtime::KernelImage image{runtime::KernelImage::Format::Object, object, "kernel"};
    code->entry = reinterpret_cast<Entry>(jit().load(image).value());
    code_[v] = std::move(code);
  }
}

SimtKernel::~SimtKernel() = default;

std::string SimtKernel::run(const Launch& launch, int64_t* parameters, uint32_t seed) const {
  const Code& code = *code_[static_cast<int>(launch.variant)];
  std::mt19937 random(seed);
  block.entry = code.entry;
  block.parameters = parameters;
  block.width = launch.block_x;
  block.height = launch.block_y;
  static Fiber alone;  // threads that wait for nobody run on this stack
  for (uint32_t y = launch.grid_y; y-- > 0;) {
    for (uint32_t x = 0; x < launch.grid_x; ++x) {
      block.x = x;
      block.y = y;
      code.entry(nullptr);
      if (code.waits) {
        prepare_fibers(size_t{launch.block_x} * launch.block_y);
        if (std::string wrong = run_fibers(random); !wrong.empty()) return wrong;
        continue;
      }
      block.current = &alone;
      for (alone.y = 0; alone.y < launch.block_y; ++alone.y)
        for (alone.x = 0; alone.x < launch.block_x; ++alone.x) code.entry(parameters);
    }
  }
  return "";
}

std::string SimtKernel::launch(const Launch& launch, const Numbers& numbers, const std::vector<void*>& buffers,
                               const std::vector<int64_t>& symbols, uint32_t seed) const {
  std::vector<int64_t> parameters;
  for (void* buffer : buffers) parameters.push_back(reinterpret_cast<int64_t>(buffer));
  numbers.pass_values(parameters);
  parameters.insert(parameters.end(), symbols.begin(), symbols.end());
  for (const int64_t divisor : numbers.divisors()) parameters.push_back(static_cast<int64_t>(magic_of(divisor)));
  std::vector<char> workspace(static_cast<size_t>(launch.workspace_bytes) + 64, 0x5b);
  parameters.push_back(reinterpret_cast<int64_t>(workspace.data()));
  parameters.push_back(0);
  if (launch.nothing()) return "";
  const int64_t passes = launch.splits > 1 ? numbers[kStages] : 0;
  for (int64_t pass = 0; pass <= passes; ++pass) {
    parameters.back() = launch.splits | pass << 32;
    if (std::string wrong = run(launch, parameters.data(), seed); !wrong.empty()) return wrong;
  }
  for (size_t i = static_cast<size_t>(launch.workspace_bytes); i < workspace.size(); ++i)
    if (workspace[i] != 0x5b) return "workspace overrun";
  return "";
}

}  // namespace cresset::codegen::nvptx
