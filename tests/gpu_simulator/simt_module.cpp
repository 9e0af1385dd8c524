#include "simt_module.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <cstring>
#include <functional>
#include <mutex>

#include "base/check.h"
#include "codegen/cpu/jit.h"
#include "codegen/cpu/target.h"
#include "codegen/nvptx/emit_math.h"
#include "codegen/nvptx/launch.h"
#include "codegen/nvptx/target.h"

namespace cresset::gpu_simulator {
namespace {

constexpr unsigned kSharedMemory = 3;                  // address space
constexpr const char* kDynamicMemory = "row";          // name of the array whose size a launch decides
constexpr const char* kTable = "simt_kernels";         // name of the array of entries in the object
constexpr const char* kDynamicArray = "simt_dynamic";  // name of the array in its place

void* find_replacement(const char* name) {
  for (const SimtIntrinsic* i = kSimtIntrinsics; i->name != nullptr; ++i)
    if (std::strcmp(i->name, name) == 0) return i->address;
  return nullptr;
}

// A float rounded to bf16, as an i16.
llvm::Value* bf16_bits(llvm::IRBuilder<>& ir, llvm::Value* v) {
  llvm::Value* bits = ir.CreateBitCast(v, ir.getInt32Ty());
  llvm::Value* odd = ir.CreateAnd(ir.CreateLShr(bits, 16), 1);
  llvm::Value* rounded = ir.CreateAdd(bits, ir.CreateAdd(odd, ir.getInt32(0x7fff)));
  llvm::Value* kept = ir.CreateSelect(ir.CreateFCmpUNO(v, v), ir.getInt32(0x7fffffff), rounded);
  return ir.CreateTrunc(ir.CreateLShr(kept, 16), ir.getInt16Ty());
}

// A conversion as plain instructions; nullptr: the call is another function.
llvm::Value* converted(llvm::IRBuilder<>& ir, llvm::CallInst* call) {
  const auto pair = [&](const std::function<llvm::Value*(llvm::Value*)>& one) {
    llvm::Value* low = one(call->getArgOperand(1));
    llvm::Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(low->getType(), 2));
    out = ir.CreateInsertElement(out, low, uint64_t{0});
    return ir.CreateInsertElement(out, one(call->getArgOperand(0)), 1);
  };
  if (const auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
    CRESSET_CHECK(text->getAsmString() == codegen::nvptx::kDivFull,
                  "no such assembly on the host: " + text->getAsmString());
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

std::vector<llvm::CallInst*> calls_of(llvm::Function& function) {
  std::vector<llvm::CallInst*> out;
  for (llvm::BasicBlock& b : function)
    for (llvm::Instruction& i : b)
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) out.push_back(call);
  return out;
}

void replace_conversions(llvm::Module& module) {
  for (llvm::Function& f : module) {
    for (llvm::CallInst* call : calls_of(f)) {
      llvm::IRBuilder<> ir(call);
      llvm::Value* v = converted(ir, call);
      if (v == nullptr) continue;
      call->replaceAllUsesWith(ir.CreateBitCast(v, call->getType()));
      call->eraseFromParent();
    }
  }
}

void replace_intrinsics(llvm::Module& module) {
  for (const SimtIntrinsic* i = kSimtIntrinsics; i->name != nullptr; ++i) {
    llvm::Function* intrinsic = module.getFunction(i->intrinsic);
    if (intrinsic == nullptr) continue;
    auto* host = llvm::Function::Create(intrinsic->getFunctionType(), llvm::Function::ExternalLinkage, i->name, module);
    if (i->is_pure) host->setDoesNotAccessMemory();
    if (i->is_pure) host->setWillReturn();
    host->setDoesNotThrow();
    for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users()))
      llvm::cast<llvm::CallInst>(user)->setCalledFunction(host);
    intrinsic->eraseFromParent();
  }
  for (const llvm::Function& f : module)
    CRESSET_CHECK(f.use_empty() || !f.getName().starts_with("llvm.nvvm."),
                  "no such intrinsic on the host: " + f.getName().str());
}

// Whether threads wait for each other in the kernel.
bool waits(llvm::Function& kernel) {
  for (llvm::CallInst* call : calls_of(kernel))
    for (const SimtIntrinsic* i = kSimtIntrinsics; i->name != nullptr; ++i)
      if (!i->is_pure && call->getCalledFunction() != nullptr && call->getCalledFunction()->getName() == i->name)
        return true;
  return false;
}

// Dynamic shared memory is an array as large as a launch may ask for.
void give_dynamic_memory(llvm::Module& module) {
  llvm::GlobalVariable* row = module.getGlobalVariable(kDynamicMemory);
  if (row == nullptr) return;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), codegen::nvptx::kMostSharedBytes);
  auto* memory = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                          llvm::Constant::getNullValue(type), kDynamicArray, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedMemory);
  memory->setAlignment(llvm::Align(16));
  row->replaceAllUsesWith(memory);
  row->eraseFromParent();
}

bool is_used_in(const llvm::Value& value, const llvm::Function& function) {
  for (const llvm::User* user : value.users()) {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
    if (instruction != nullptr ? instruction->getFunction() == &function : is_used_in(*user, function)) return true;
  }
  return false;
}

llvm::Function* start_function(llvm::Module& module, llvm::Type* argument, llvm::IRBuilder<>& ir) {
  auto* type = llvm::FunctionType::get(ir.getVoidTy(), {argument}, false);
  auto* out = llvm::Function::Create(type, llvm::Function::InternalLinkage, "simt", module);
  ir.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", out));
  return out;
}

// SimtFunction::run: calls the kernel with the parameters in memory.
llvm::Function* make_run(llvm::Module& module, llvm::Function& kernel) {
  llvm::IRBuilder<> ir(module.getContext());
  llvm::Function* out = start_function(module, ir.getPtrTy(), ir);
  std::vector<llvm::Value*> arguments;
  for (const llvm::Argument& argument : kernel.args())
    arguments.push_back(
        ir.CreateLoad(argument.getType(), ir.CreateConstGEP1_64(ir.getInt64Ty(), out->getArg(0), arguments.size())));
  ir.CreateCall(&kernel, arguments);
  ir.CreateRetVoid();
  return out;
}

// SimtFunction::poison.
llvm::Function* make_poison(llvm::Module& module, llvm::Function& kernel) {
  llvm::IRBuilder<> ir(module.getContext());
  llvm::Function* out = start_function(module, ir.getInt64Ty(), ir);
  for (llvm::GlobalVariable& shared : module.globals()) {
    if (shared.getAddressSpace() != kSharedMemory || !is_used_in(shared, kernel)) continue;
    llvm::Value* bytes = out->getArg(0);
    if (shared.getName() != kDynamicArray) {
      shared.setInitializer(llvm::Constant::getNullValue(shared.getValueType()));
      bytes = ir.getInt64(module.getDataLayout().getTypeAllocSize(shared.getValueType()));
    }
    ir.CreateMemSet(&shared, ir.getInt8(0x5a), bytes, llvm::Align(8));
  }
  ir.CreateRetVoid();
  return out;
}

std::vector<llvm::Function*> kernels_of(llvm::Module& module) {
  std::vector<llvm::Function*> out;
  for (llvm::Function& f : module)
    if (f.getCallingConv() == llvm::CallingConv::PTX_Kernel && !f.isDeclaration()) out.push_back(&f);
  return out;
}

// Adds the array of the kernels' entries: two functions each.
void add_table(llvm::Module& module, const std::vector<llvm::Function*>& kernels) {
  std::vector<llvm::Constant*> entries;
  for (llvm::Function* kernel : kernels) {
    kernel->setCallingConv(llvm::CallingConv::C);
    kernel->setLinkage(llvm::Function::InternalLinkage);
    entries.push_back(make_run(module, *kernel));
    entries.push_back(make_poison(module, *kernel));
  }
  auto* type = llvm::ArrayType::get(llvm::PointerType::getUnqual(module.getContext()), entries.size());
  new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantArray::get(type, entries), kTable);
}

// LLVM's state for the host. Held under `mutex`, since neither part is safe to use from several threads.
struct Host {
  std::mutex mutex;
  codegen::cpu::ObjectCompiler compiler{codegen::cpu::host_target(0)};
  codegen::cpu::Jit jit{codegen::cpu::host_target(0).triple};
};
Host& host() {
  static Host* const host = [] {
    auto* made = new Host();
    made->jit.set_resolver(&find_replacement);
    return made;
  }();
  return *host;
}

}  // namespace

SimtModule::SimtModule(llvm::Module& module) {
  std::lock_guard lock(host().mutex);
  host().compiler.prepare(module);
  if (llvm::NamedMDNode* annotations = module.getNamedMetadata("nvvm.annotations"))
    module.eraseNamedMetadata(annotations);
  replace_conversions(module);
  replace_intrinsics(module);
  give_dynamic_memory(module);
  const std::vector<llvm::Function*> kernels = kernels_of(module);
  add_table(module, kernels);
  std::vector<std::pair<std::string, bool>> names;  // and whether threads wait
  for (llvm::Function* kernel : kernels) names.emplace_back(kernel->getName().str(), waits(*kernel));
  const std::string object = host().compiler.compile(module);
  using Format = runtime::KernelImage::Format;
  void* const loaded = host().jit.load({.format = Format::Object, .bytes = object, .entry = kTable}).value();
  auto* const entries = static_cast<void* const*>(loaded);
  for (size_t i = 0; i < names.size(); ++i) {
    functions_[names[i].first] = {.run = reinterpret_cast<void (*)(int64_t*)>(entries[2 * i]),
                                  .poison = reinterpret_cast<void (*)(int64_t)>(entries[2 * i + 1]),
                                  .waits = names[i].second};
  }
}

namespace {

Result<std::unique_ptr<llvm::Module>> read_module(const std::string& text, llvm::LLVMContext& context) {
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  if (module == nullptr)
    return Fallback{FallbackReason::CodegenFailed, "reading a kernel's LLVM text: " + error.getMessage().str(), ""};
  return module;
}

}  // namespace

Result<std::unique_ptr<SimtModule>> SimtModule::parse(const std::string& text) {
  llvm::LLVMContext context;
  CRESSET_TRY(const std::unique_ptr<llvm::Module> module, read_module(text, context));
  return std::make_unique<SimtModule>(*module);
}

Result<std::string> ptx_of(const std::string& text, int chip) {
  static std::mutex mutex;
  static codegen::nvptx::PtxCompiler compiler(chip);
  llvm::LLVMContext context;
  CRESSET_TRY(const std::unique_ptr<llvm::Module> module, read_module(text, context));
  const std::lock_guard lock(mutex);
  return compiler.compile(*module);
}

const SimtFunction* SimtModule::function(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace cresset::gpu_simulator
