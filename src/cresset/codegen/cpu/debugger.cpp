#include "codegen/cpu/debugger.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/ExecutionEngine/Orc/Shared/ExecutorAddress.h>
#include <llvm/ExecutionEngine/Orc/Shared/SimplePackedSerialization.h>
#include <llvm/ExecutionEngine/Orc/Shared/WrapperFunctionUtils.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/Support/Error.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cresset::codegen::cpu {
namespace {

namespace elf = llvm::ELF;

#ifdef __aarch64__
constexpr uint16_t kMachine = elf::EM_AARCH64;
#else
constexpr uint16_t kMachine = elf::EM_X86_64;
#endif

enum Section : uint16_t { kNone, kText, kSymbols, kNames, kSectionNames, kSections };
constexpr std::string_view kNamesOfSections{"\0.text\0.symtab\0.strtab\0.shstrtab\0", 33};

// A file without contents but for one symbol, which covers code that is in memory already.
struct SymbolFile {
  elf::Elf64_Ehdr header{};
  std::array<elf::Elf64_Shdr, kSections> sections{};
  std::array<elf::Elf64_Sym, 2> symbols{};
};

elf::Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t offset, uint64_t size) {
  elf::Elf64_Shdr out{};
  out.sh_name = name, out.sh_type = type, out.sh_offset = offset, out.sh_size = size, out.sh_addralign = 1;
  return out;
}

std::string symbol_file(const void* entry, uint64_t bytes, const std::string& name) {
  SymbolFile file;
  std::memcpy(file.header.e_ident, elf::ElfMagic, 4);
  file.header.e_ident[elf::EI_CLASS] = elf::ELFCLASS64, file.header.e_ident[elf::EI_DATA] = elf::ELFDATA2LSB;
  file.header.e_ident[elf::EI_VERSION] = elf::EV_CURRENT;
  file.header.e_type = elf::ET_EXEC, file.header.e_machine = kMachine, file.header.e_version = elf::EV_CURRENT;
  file.header.e_shoff = offsetof(SymbolFile, sections), file.header.e_ehsize = sizeof(elf::Elf64_Ehdr);
  file.header.e_shentsize = sizeof(elf::Elf64_Shdr), file.header.e_shnum = kSections;
  file.header.e_shstrndx = kSectionNames;

  const uint64_t names = sizeof(SymbolFile), names_size = name.size() + 2;
  file.sections[kText] = section(1, elf::SHT_NOBITS, 0, bytes);
  file.sections[kText].sh_flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
  file.sections[kText].sh_addr = reinterpret_cast<uintptr_t>(entry);
  file.sections[kSymbols] = section(7, elf::SHT_SYMTAB, offsetof(SymbolFile, symbols), sizeof(file.symbols));
  file.sections[kSymbols].sh_link = kNames, file.sections[kSymbols].sh_info = 1;
  file.sections[kSymbols].sh_entsize = sizeof(elf::Elf64_Sym), file.sections[kSymbols].sh_addralign = 8;
  file.sections[kNames] = section(15, elf::SHT_STRTAB, names, names_size);
  file.sections[kSectionNames] = section(23, elf::SHT_STRTAB, names + names_size, kNamesOfSections.size());

  elf::Elf64_Sym& symbol = file.symbols[1];
  symbol.st_name = 1, symbol.st_shndx = kText, symbol.st_size = bytes;
  symbol.st_value = reinterpret_cast<uintptr_t>(entry);
  symbol.setBindingAndType(elf::STB_GLOBAL, elf::STT_FUNC);

  std::string out(reinterpret_cast<const char*>(&file), sizeof(file));
  out += '\0', out += name, out += '\0';
  return out.append(kNamesOfSections);
}

}  // namespace

void show_to_debugger(const void* entry, uint64_t bytes, const std::string& name) {
  using Arguments = llvm::orc::shared::SPSArgList<llvm::orc::shared::SPSExecutorAddrRange, /*auto registration*/ bool>;
  // Debuggers read the file whenever they are attached.
  const auto& file = *new std::string(symbol_file(entry, bytes, name));
  const auto start = llvm::orc::ExecutorAddr::fromPtr(file.data());
  const llvm::orc::ExecutorAddrRange range(start, start + file.size());
  auto packed = llvm::orc::shared::WrapperFunctionResult::allocate(Arguments::size(range, true));
  llvm::orc::shared::SPSOutputBuffer buffer(packed.data(), packed.size());
  if (!Arguments::serialize(buffer, range, true)) return;
  const llvm::orc::shared::WrapperFunctionResult done(
      llvm_orc_registerJITLoaderGDBWrapper(packed.data(), packed.size()));
}

}  // namespace cresset::codegen::cpu
