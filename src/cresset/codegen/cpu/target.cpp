#include "codegen/cpu/target.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <mutex>

#include "base/check.h"
#include "base/options.h"

namespace cresset::codegen::cpu {
namespace {

// Loop strength reduction took a quarter or more of a kernel's compile time, without any gain. Kernels hoist invariants
// themselves, and a single induction variable with scaled addresses suits x86 and ARM. This option is LLVM's only way
// to leave the pass out of a target's pipeline.
void leave_out_strength_reduction() {
  auto& known = llvm::cl::getRegisteredOptions();
  const auto found = known.find("disable-lsr");
  if (found != known.end()) static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    leave_out_strength_reduction();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

int widest(const llvm::StringMap<bool>& features) {
  auto has = [&](const char* name) { return features.lookup(name); };
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) return 512;
  return has("avx2") ? 256 : 128;
}

}  // namespace

Target host_target(int vector_bits) {
  initialize_llvm();
  Target out;
  out.triple = llvm::sys::getProcessTriple();
  out.cpu = llvm::sys::getHostCPUName().str();
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> names;
  for (const auto& feature : features) names.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) out.features += (out.features.empty() ? "" : ",") + name;
  const int limit = widest(features);
  out.has_fma = features.lookup("fma") || llvm::Triple(out.triple).isAArch64();
  out.vector_bits = vector_bits == 0 ? limit : std::min(vector_bits, limit);
  out.has_scalef = limit == 512 && out.vector_bits == 512;
  out.has_bf16 = out.has_scalef && features.lookup("avx512bf16");
  if (limit == 512 && out.vector_bits < 512) out.features += ",-avx512f";
  return out;
}

// The analyses of a new-pass-manager pipeline, kept over modules.
struct ObjectCompiler::Passes {
  explicit Passes(llvm::TargetMachine* machine) : builder(machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    // Kernels arrive vectorized and with invariant loads hoisted: only cleaning up is left.
    pipeline.addPass(llvm::PromotePass());
    pipeline.addPass(llvm::EarlyCSEPass());
    pipeline.addPass(llvm::InstCombinePass());
    pipeline.addPass(llvm::SimplifyCFGPass());
    pipeline.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    pipeline.addPass(llvm::EarlyCSEPass());
    llvm::MCContext* context = nullptr;
    const bool failed = machine->addPassesToEmitMC(emit, context, stream, /*DisableVerify=*/true);
    CRESSET_CHECK(!failed, "the target emits no objects");
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::FunctionPassManager pipeline;
  // Instruction selection and emission, appending to `bytes`. Building these hundred passes takes longer than running
  // them on a tiny kernel, so they are also kept. Each pass forgets the module when it is done.
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream{bytes};
  llvm::legacy::PassManager emit;
};

ObjectCompiler::ObjectCompiler(const Target& target) : target_(target) {
  initialize_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  CRESSET_CHECK(found != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // eager mode never fuses a multiply and an add
  machine_.reset(found->createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                            llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  CRESSET_CHECK(machine_ != nullptr, "LLVM makes no code for " + target.triple);
  passes_ = std::make_unique<Passes>(machine_.get());
}

ObjectCompiler::~ObjectCompiler() = default;

void ObjectCompiler::prepare(llvm::Module& module) const {
  module.setTargetTriple(target_.triple);
  module.setDataLayout(machine_->createDataLayout());
}

void ObjectCompiler::set_attributes(llvm::Module& module) const {
  const std::string width = std::to_string(target_.vector_bits);
  for (llvm::Function& function : module) {  // processor and features are those of the target machine
    if (function.isDeclaration()) continue;
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
}

std::string ObjectCompiler::compile(llvm::Module& module) {
  set_attributes(module);
  if (option_flag(Option::VERIFY)) CRESSET_CHECK(!llvm::verifyModule(module, &llvm::errs()), "malformed kernel code");
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes_->pipeline.run(function, passes_->functions);
  passes_->functions.clear();
  passes_->modules.clear();
  passes_->bytes.clear();
  passes_->emit.run(module);
  return {passes_->bytes.begin(), passes_->bytes.end()};
}

}  // namespace cresset::codegen::cpu
