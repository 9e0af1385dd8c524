#include "codegen/nvptx/target.h"

#include <fmt/format.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

#include "base/check.h"
#include "base/options.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace cresset::codegen::nvptx {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
constexpr const char* kPtxVersion = "+ptx83";  // CUDA 12.3, the driver that torch's CUDA builds ask for at least

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

}  // namespace

struct PtxCompiler::Passes {
  explicit Passes(llvm::TargetMachine* machine) : builder(machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    pipeline.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    pipeline.addPass(llvm::EarlyCSEPass());
    pipeline.addPass(llvm::InstCombinePass());
    pipeline.addPass(llvm::SimplifyCFGPass());
    pipeline.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    pipeline.addPass(llvm::EarlyCSEPass());
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::FunctionPassManager pipeline;
};

PtxCompiler::PtxCompiler(int chip) {
  initialize_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
  CRESSET_CHECK(found != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // the same numbers as on other devices
  machine_.reset(found->createTargetMachine(kTriple, fmt::format("sm_{}", chip), kPtxVersion, options,
                                            llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  CRESSET_CHECK(machine_ != nullptr, "LLVM makes no code for NVPTX");
  passes_ = std::make_unique<Passes>(machine_.get());
}

PtxCompiler::~PtxCompiler() = default;

void PtxCompiler::prepare(llvm::Module& module) const {
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine_->createDataLayout());
}

// NVPTX's passes keep state of a module, so that they are built for each.
std::string PtxCompiler::compile(llvm::Module& module) {
  if (option_flag(Option::VERIFY)) CRESSET_CHECK(!llvm::verifyModule(module, &llvm::errs()), "malformed kernel code");
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes_->pipeline.run(function, passes_->functions);
  passes_->functions.clear();
  passes_->modules.clear();
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emit;
  const bool failed = machine_->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                                    /*DisableVerify=*/true);
  CRESSET_CHECK(!failed, "the target emits no text");
  emit.run(module);
  return {text.begin(), text.end()};
}

}  // namespace cresset::codegen::nvptx
