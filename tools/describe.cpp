// describe: tells codegen (Python) what core/ says, so that levers, rules and layout are written once, in C++.
// Built before everything else that is generated; codegen/core.py runs it. It calls no library and needs no GPU.
//
//   describe           JSON: levers, kernel kinds, architectures, defaults, helper kernels
//   describe --check   answers lines "cc <tab> kind <tab> config text" with "reason <tab> canonical text <tab> name";
//                      an empty reason means legal, and a text that does not parse gets only its reason
#include <fulcrum/core/config.h>
#include <fulcrum/core/rules.h>
#include <fulcrum/host/routing.hpp>
#include <fulcrum/pack/repack_entries.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using fulcrum::Config;
using fulcrum::KernelKind;
using fulcrum::lever_infos;
using fulcrum::LeverInfo;
using fulcrum::num_levers;

constexpr const char* kind_names[] = {"layout", "math", "tune", "run"};  // in the order of LeverKind

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return json + '"';
}

std::string value_text(const LeverInfo& info, int32_t value) {
  return info.values.count > 0 ? info.values.names[value] : std::to_string(value);
}

std::string config_text(const Config& config) {
  char buffer[fulcrum::config_text_capacity];
  fulcrum::write_config(config, buffer, sizeof buffer);
  return buffer;
}

// The id of the device code, then the run levers that are not at their default: two Configs never share a name.
std::string variant_name(const Config& config) {
  char buffer[fulcrum::config_text_capacity];
  fulcrum::write_id(config, buffer, sizeof buffer);
  std::string name = buffer;
  for (int32_t i = 0; i < num_levers; ++i) {
    const LeverInfo& info = lever_infos[i];
    const int32_t value = get_lever(config, i);
    if (info.kind == fulcrum::LeverKind::run && value != info.default_value)
      name += std::string("_") + info.tag + value_text(info, value);
  }
  return name;
}

// "f16", "bf16_gate_up", "f16_gate_up_silu", ...
std::string kind_text(KernelKind kind) {
  std::string text = value_name(kind.dtype);
  if (kind.gate_up) text += "_gate_up";
  if (kind.activation != fulcrum::Activation::none) text += std::string("_") + value_name(kind.activation);
  return text;
}

// Every combination that the rules allow.
std::vector<KernelKind> all_kinds() {
  std::vector<KernelKind> kinds;
  for (int32_t dtype = 0; dtype < fulcrum::value_names(fulcrum::DType{}).count; ++dtype) {
    for (const bool gate_up : {false, true}) {
      for (int32_t activation = 0; activation < fulcrum::value_names(fulcrum::Activation{}).count; ++activation) {
        const KernelKind kind{fulcrum::DType(dtype), gate_up, fulcrum::Activation(activation)};
        const fulcrum::Arch first{fulcrum::supported_archs[0]};
        if (illegal_reason(fulcrum::default_config(kind, first), first, kind) == nullptr) kinds.push_back(kind);
      }
    }
  }
  return kinds;
}

void print_levers() {
  std::printf("  \"levers\": [");
  for (int32_t i = 0; i < num_levers; ++i) {
    const LeverInfo& info = lever_infos[i];
    std::printf(
        "%s\n    {\"name\": \"%s\", \"tag\": \"%s\", \"kind\": \"%s\", \"default\": \"%s\", \"absent\": \"%s\", ",
        i > 0 ? "," : "", info.name, info.tag, kind_names[int(info.kind)], value_text(info, info.default_value).c_str(),
        value_text(info, info.absent_value).c_str());
    std::printf("\"names\": [");
    for (int32_t value = 0; value < info.values.count; ++value)
      std::printf("%s\"%s\"", value > 0 ? ", " : "", info.values.names[value]);
    std::printf("], \"sentence\": %s}", quoted(info.sentence).c_str());
  }
  std::printf("\n  ],\n");
}

void print_kinds() {
  std::printf("  \"kinds\": [");
  const char* comma = "";
  for (const KernelKind kind : all_kinds()) {
    std::printf(
        "%s\n    {\"name\": \"%s\", \"dtype\": \"%s\", \"gate_up\": %s, \"activation\": \"%s\", \"defaults\": {", comma,
        kind_text(kind).c_str(), value_name(kind.dtype), kind.gate_up ? "true" : "false", value_name(kind.activation));
    const char* inner = "";
    for (const int cc : fulcrum::supported_archs) {
      std::printf("%s\"%d\": \"%s\"", inner, cc, config_text(fulcrum::default_config(kind, fulcrum::Arch{cc})).c_str());
      inner = ", ";
    }
    std::printf("}}");
    comma = ",";
  }
  std::printf("\n  ],\n");
}

void print_archs() {
  std::printf("  \"archs\": [");
  const char* comma = "";
  for (const int cc : fulcrum::supported_archs) {
    std::printf("%s{\"cc\": %d, \"name\": \"%s\"}", comma, cc, arch_name(fulcrum::Arch{cc}));
    comma = ", ";
  }
  std::printf("],\n");
}

// What an engine without NVRTC launches beside the GEMMs. code_word and k_order are empty where any layout will do.
void print_helpers() {
  std::printf("  \"helpers\": [");
  const char* comma = "";
  const auto print = [&](const char* name, const std::string& source, const char* params, const char* code_word,
                         const char* k_order) {
    std::printf("%s\n    {\"name\": \"%s\", \"source\": %s, \"params\": \"%s\", ", comma, name, quoted(source).c_str(),
                params);
    std::printf("\"code_word\": \"%s\", \"k_order\": \"%s\"}", code_word, k_order);
    comma = ",";
  };
  for (const fulcrum::AuxiliarySource& kernel : fulcrum::routing_sources)
    print(kernel.name, kernel.source, "CsrParams", "", "");
  for (const fulcrum::RepackEntry& entry : fulcrum::repack_entries.entries) {
    const fulcrum::Layout layout = entry.kind.layout;
    if (entry.direction == fulcrum::RepackDirection::pack)
      print(entry.name, entry.source, "RepackParams", value_name(layout.code_word), value_name(layout.k_order));
  }
  std::printf("\n  ]\n");
}

// One line in, one line out. The words of a parse error carry the position in the text.
std::string answer(const std::string& line) {
  const size_t kind_begin = line.find('\t') + 1, text_begin = line.find('\t', kind_begin) + 1;
  if (kind_begin == 0 || text_begin == 0) return "expected cc, kind and config text between tabs";
  const fulcrum::Arch arch{std::atoi(line.c_str())};
  const std::string kind_name = line.substr(kind_begin, text_begin - 1 - kind_begin);
  Config config;
  const fulcrum::ConfigError error = fulcrum::parse_config(line.c_str() + text_begin, config);
  if (error.what != nullptr) return std::string(error.what) + " at " + std::to_string(error.position);
  static const std::vector<KernelKind> kinds = all_kinds();
  for (const KernelKind kind : kinds) {
    if (kind_text(kind) != kind_name) continue;
    const char* reason = illegal_reason(config, arch, kind);
    return (reason != nullptr ? reason : "") + ("\t" + config_text(config)) + "\t" + variant_name(config);
  }
  return "there is no kernel kind " + kind_name;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--check") {
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << '\n';
    return std::cout.flush() ? 0 : 1;
  }
  if (argc != 1) {
    std::fprintf(stderr, "usage: describe [--check]\n");
    return 2;
  }
  std::printf("{\n");
  print_levers();
  print_kinds();
  print_archs();
  print_helpers();
  std::printf("}\n");
  return 0;
}
