#include "codegen/cpu/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/DynamicLibrary.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Triple.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/options.h"
#include "codegen/cpu/debugger.h"

namespace cresset::codegen::cpu {
namespace {

namespace orc = llvm::orc;

struct Known {
  const char* name;
  void* address;
};

// libm as linked into this process: available even when the executable exports no symbols.
#define CRESSET_LIBM_1(name)                                                     \
  {#name, reinterpret_cast<void*>(static_cast<double (*)(double)>(::name))}, {   \
    #name "f", reinterpret_cast<void*>(static_cast<float (*)(float)>(::name##f)) \
  }
#define CRESSET_LIBM_2(name)                                                            \
  {#name, reinterpret_cast<void*>(static_cast<double (*)(double, double)>(::name))}, {  \
    #name "f", reinterpret_cast<void*>(static_cast<float (*)(float, float)>(::name##f)) \
  }
const Known kLibm[] = {
    CRESSET_LIBM_1(exp),   CRESSET_LIBM_1(exp2),   CRESSET_LIBM_1(expm1),     CRESSET_LIBM_1(log),
    CRESSET_LIBM_1(log2),  CRESSET_LIBM_1(log10),  CRESSET_LIBM_1(log1p),     CRESSET_LIBM_1(sin),
    CRESSET_LIBM_1(cos),   CRESSET_LIBM_1(tan),    CRESSET_LIBM_1(asin),      CRESSET_LIBM_1(acos),
    CRESSET_LIBM_1(atan),  CRESSET_LIBM_1(sinh),   CRESSET_LIBM_1(cosh),      CRESSET_LIBM_1(tanh),
    CRESSET_LIBM_1(asinh), CRESSET_LIBM_1(acosh),  CRESSET_LIBM_1(atanh),     CRESSET_LIBM_1(erf),
    CRESSET_LIBM_1(erfc),  CRESSET_LIBM_1(lgamma), CRESSET_LIBM_1(floor),     CRESSET_LIBM_1(ceil),
    CRESSET_LIBM_1(trunc), CRESSET_LIBM_1(rint),   CRESSET_LIBM_1(nearbyint), CRESSET_LIBM_2(pow),
    CRESSET_LIBM_2(atan2), CRESSET_LIBM_2(hypot),  CRESSET_LIBM_2(nextafter), CRESSET_LIBM_2(fmod),
    CRESSET_LIBM_2(fmax),  CRESSET_LIBM_2(fmin),
};
#undef CRESSET_LIBM_1
#undef CRESSET_LIBM_2

void* find_libm(llvm::StringRef name) {
  for (const Known& known : kLibm)
    if (name == known.name) return known.address;
  return nullptr;
}

// Sizes of loaded functions, until they are named for perf and debuggers.
class LoadedCode {
 public:
  void add(const void* entry, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[entry] = bytes;
  }
  void name(const void* entry, const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = bytes_.find(entry);
    if (found == bytes_.end()) return;
    if (std::FILE* map = std::fopen(fmt::format("/tmp/perf-{}.map", ::getpid()).c_str(), "a")) {
      fmt::print(map, "{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(entry), found->second, name);
      std::fclose(map);
    }
    show_to_debugger(entry, found->second, name);
    bytes_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, uint64_t> bytes_;
};

LoadedCode& loaded_code() {
  static auto* const instance = new LoadedCode;
  return *instance;
}

// The size of the entry function as the object's symbol table says; 0 where it does not.
uint64_t code_bytes(const runtime::KernelImage& image) {
  const llvm::StringRef bytes(image.bytes.data(), image.bytes.size());
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) return llvm::consumeError(object.takeError()), 0;
  for (const llvm::object::ELFSymbolRef symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**object).symbols()) {
    auto name = symbol.getName();
    if (name && *name == image.entry) return symbol.getSize();
    if (!name) llvm::consumeError(name.takeError());
  }
  return 0;
}

}  // namespace

// The functions called by kernels: libm, the vector-math library, and functions called by LLVM's own code (memset, half
// conversions).
class Jit::Library : public orc::DefinitionGenerator {
 public:
  explicit Library(const Jit& jit) : jit_(jit) {}

  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& library, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& symbols) override {
    orc::SymbolMap found;
    for (const auto& [name, flags] : symbols) {
      if (void* address = find(*name))
        found[name] = {orc::ExecutorAddr::fromPtr(address),
                       llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    return found.empty() ? llvm::Error::success() : library.define(orc::absoluteSymbols(std::move(found)));
  }

 private:
  void* find(llvm::StringRef name) const {
    if (void* address = find_libm(name)) return address;
    const SymbolResolver resolver = jit_.resolver_;
    if (resolver != nullptr)
      if (void* address = resolver(name.str().c_str())) return address;
    return llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(name.str());
  }

  const Jit& jit_;
};

Jit::Jit(const std::string& triple) {
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);  // the process's own symbols
  orc::JITTargetMachineBuilder machine{llvm::Triple(triple)};
  auto made = orc::LLJITBuilder()
                  .setJITTargetMachineBuilder(std::move(machine))
                  .setPlatformSetUp(orc::setUpInactivePlatform)
                  .setLinkProcessSymbolsByDefault(false)
                  .create();
  CRESSET_CHECK(static_cast<bool>(made), "the JIT did not start: " + llvm::toString(made.takeError()));
  jit_ = std::move(*made);
  jit_->getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  jit_->getMainJITDylib().addGenerator(std::make_unique<Library>(*this));
}

Jit::~Jit() = default;

// Each object has a separate library in front of the shared library. An object with names seen before is therefore no
// conflict. (This happens when the cache was cleared and the kernel compiled again.)
Result<void*> Jit::load(const runtime::KernelImage& object) {
  const auto failure = [](llvm::Error error) {
    return Fallback{FallbackReason::CodegenFailed, "linking a kernel: " + llvm::toString(std::move(error)), ""};
  };
  auto library = jit_->createJITDylib("kernel" + std::to_string(count_++));
  if (!library) return failure(library.takeError());
  library->addToLinkOrder(jit_->getMainJITDylib());
  auto bytes = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.bytes.data(), object.bytes.size()));
  if (llvm::Error failed = jit_->addObjectFile(*library, std::move(bytes))) return failure(std::move(failed));
  auto symbol = jit_->lookup(*library, object.entry);
  if (!symbol) return failure(symbol.takeError());
  void* const entry = symbol->toPtr<void*>();
  if (option_flag(Option::PROFILE_KERNELS)) loaded_code().add(entry, code_bytes(object));
  return entry;
}

void name_code(const void* entry, const std::string& name) { loaded_code().name(entry, name); }

}  // namespace cresset::codegen::cpu
