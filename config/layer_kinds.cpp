#include "config/layer_kinds.h"

#include <algorithm>

#include "config/list_codecs.h"
#include "config/network_fields.h"
#include "config/record.h"
#include "config/scalar_codecs.h"

namespace troupe::config {
namespace {

using model::ActivationKind;
using model::Initialiser;
using model::Layer;

using KindTable = std::vector<KindEntry>;

constexpr std::int64_t kMostFilters = 4096;
constexpr std::size_t kMostOthers = 64;  // layers that one joins to its own
constexpr const char* kNamePattern = "[A-Za-z][A-Za-z0-9_]*";

// A layer's section holds its options of kind K and those that every layer has.
template <class K>
struct Described {
  std::string name;
  std::string input;
  K options;
};

template <class K>
using LayerRecord = std::shared_ptr<Record<Described<K>>>;

// Reaches an option of the kind from the section.
template <class K, class T>
auto option(T K::*member) {
  return within(&Described<K>::options, member);
}

template <class K>
LayerRecord<K> layer_record(const std::string& kind) {
  return std::make_shared<Record<Described<K>>>("options of " + kind);
}

// Adds the fields that every layer has, and the kind to the table.
template <class K>
void add_kind(KindTable& table, std::string word, LayerRecord<K> record) {
  record->field("name", &Described<K>::name, text("a name of letters, digits and _", kNamePattern),
                Scope::kState, "Unique in the network; by default the kind and its number.");
  record->field("input", &Described<K>::input, text("the name of a layer", kNamePattern),
                Scope::kState, "The layer it reads, or `input`; by default the one before.");
  auto codec = codec_of<Layer>(
      record->describe(),
      [record](const YamlValue& value, Layer& into, Reader& reader) {
        Described<K> described;
        record->read(value, described, reader);
        into = {std::move(described.name), std::move(described.options),
                std::move(described.input)};
      },
      [record](const Layer& layer, Selection selection) {
        return record->write({layer.name, layer.input, std::get<K>(layer.kind)}, selection);
      });
  table.push_back({std::move(word), std::move(codec)});
}

CodecOf<Initialiser> initialiser() {
  return word<Initialiser>({{"glorot_uniform", Initialiser::kGlorotUniform},
                            {"glorot_normal", Initialiser::kGlorotNormal},
                            {"he_uniform", Initialiser::kHeUniform},
                            {"zeros", Initialiser::kZeros},
                            {"ones", Initialiser::kOnes}});
}

CodecOf<model::Padding> padding() {
  return word<model::Padding>({{"valid", model::Padding::kValid}, {"same", model::Padding::kSame}});
}

// A norm of single samples without groups.
template <class Norm>
void add_sample_norm(KindTable& table, const std::string& word) {
  auto norm = layer_record<Norm>(word);
  norm->field("epsilon", option(&Norm::epsilon), positive(), Scope::kState,
              "Added to the variance.");
  add_kind(table, word, norm);
}

template <class Pool>
void add_pool(KindTable& table, const std::string& word, const std::string& doc) {
  auto pool = layer_record<Pool>(word);
  pool->short_form("size")
      .required("size", option(&Pool::size), extent(1, 64, 1), Scope::kState, doc)
      .field("stride", option(&Pool::stride), optional(extent(1, 64, 1)), Scope::kState,
             "Cells from one window to the next, per axis; by default the size.")
      .field("padding", option(&Pool::padding), newer(padding(), model::Padding::kValid),
             Scope::kState,
             "`valid` leaves out cells that fill no window. `same` gives cells / stride, rounded "
             "up, and windows reach beyond the image, where nothing counts.");
  add_kind(table, word, pool);
}

void add_dense_and_convolution(KindTable& table) {
  using model::Convolution;
  using model::Dense;
  auto dense = layer_record<Dense>("dense");
  dense->short_form("units")
      .required("units", option(&Dense::units), integer<std::int64_t>(1, kMostUnits), Scope::kState,
                "Outputs; an image is flattened first.")
      .field("bias", option(&Dense::bias), boolean(), Scope::kState, "Whether a bias is added.")
      .field("initialiser", option(&Dense::initialiser), initialiser(), Scope::kState,
             "What the kernel begins as.");
  add_kind(table, "dense", dense);

  auto convolution = layer_record<Convolution>("convolution");
  convolution
      ->required("filters", option(&Convolution::filters), integer<std::int64_t>(1, kMostFilters),
                 Scope::kState, "Output channels.")
      .required("kernel", option(&Convolution::kernel), extent(1, 64, 1), Scope::kState,
                "Cells per axis; 1 along those that are left out.")
      .field("stride", option(&Convolution::stride),
             newer(extent(1, 64, 1), model::Extent{1, 1, 1}), Scope::kState,
             "Cells from one window to the next, per axis.")
      .field("dilation", option(&Convolution::dilation),
             newer(extent(1, 64, 1), model::Extent{1, 1, 1}), Scope::kState,
             "Cells from one tap of a window to the next, per axis.")
      .field("groups", option(&Convolution::groups),
             newer(integer<std::int64_t>(1, kMostFilters), std::int64_t{1}), Scope::kState,
             "Cuts channels and filters into so many parts, each by itself; as many as there are "
             "channels for a depthwise convolution.")
      .field("padding", option(&Convolution::padding), padding(), Scope::kState,
             "`same` gives cells / stride, rounded up, and pads half of what is missing, rounded "
             "down, before.")
      .field("bias", option(&Convolution::bias), boolean(), Scope::kState,
             "Whether a bias is added.")
      .field("initialiser", option(&Convolution::initialiser), initialiser(), Scope::kState,
             "What the kernel begins as.");
  add_kind(table, "convolution", convolution);
}

void add_transposed_convolution(KindTable& table) {
  using model::TransposedConvolution;
  auto transposed = layer_record<TransposedConvolution>("transposed_convolution");
  transposed
      ->required("filters", option(&TransposedConvolution::filters),
                 integer<std::int64_t>(1, kMostFilters), Scope::kState, "Output channels.")
      .required("kernel", option(&TransposedConvolution::kernel), extent(1, 64, 1), Scope::kState,
                "Cells per axis that a cell spreads over.")
      .field("stride", option(&TransposedConvolution::stride), extent(1, 64, 1), Scope::kState,
             "Output cells from one window to the next, per axis.")
      .field("padding", option(&TransposedConvolution::padding), padding(), Scope::kState,
             "`same` gives cells x stride; `valid` adds window - stride cells where the window is "
             "larger.")
      .field("bias", option(&TransposedConvolution::bias), boolean(), Scope::kState,
             "Whether a bias is added.")
      .field("initialiser", option(&TransposedConvolution::initialiser), initialiser(),
             Scope::kState, "What the kernel begins as.")
      .field("pads", option(&TransposedConvolution::pads), optional(margins(4096)), Scope::kState,
             "Cells left away at the ends of each axis, PyTorch's `padding`; [before, behind] of "
             "an axis where they differ. With it, or with output_padding, there are (cells - 1) x "
             "stride + window - pads before and behind + output_padding cells, where a window has "
             "(kernel - 1) x dilation + 1.")
      .field("output_padding", option(&TransposedConvolution::output_padding),
             optional(extent(0, 63, 0)), Scope::kState,
             "More cells behind, per axis, fewer than the stride. `same` has no need of it.")
      .field("dilation", option(&TransposedConvolution::dilation),
             newer(extent(1, 64, 1), model::Extent{1, 1, 1}), Scope::kState,
             "Cells from one tap of a window to the next, per axis.")
      .field("groups", option(&TransposedConvolution::groups),
             newer(integer<std::int64_t>(1, kMostFilters), std::int64_t{1}), Scope::kState,
             "Cuts channels and filters into so many parts, each by itself.");
  add_kind(table, "transposed_convolution", transposed);
}

void add_norms(KindTable& table) {
  using model::BatchNorm;
  auto batch_norm = layer_record<BatchNorm>("batch_norm");
  batch_norm
      ->field("momentum", option(&BatchNorm::momentum), number(0.0, 1.0), Scope::kState,
              "Share of the moving statistics that stays at each step.")
      .field("epsilon", option(&BatchNorm::epsilon), positive(), Scope::kState,
             "Added to the variance.")
      .field("sync", option(&BatchNorm::sync), newer(boolean(), false), Scope::kState,
             "Whether the batch is that of all micro-batches of a step, and not of each.");
  add_kind(table, "batch_norm", batch_norm);

  add_sample_norm<model::LayerNorm>(table, "layer_norm");
  add_sample_norm<model::InstanceNorm>(table, "instance_norm");
  using model::GroupNorm;
  auto group_norm = layer_record<GroupNorm>("group_norm");
  group_norm->short_form("groups")
      .required("groups", option(&GroupNorm::groups), integer<std::int64_t>(1, kMostFilters),
                Scope::kState, "Parts of the channels, each normalised by itself.")
      .field("epsilon", option(&GroupNorm::epsilon), positive(), Scope::kState,
             "Added to the variance.");
  add_kind(table, "group_norm", group_norm);
}

void add_embedding_and_attention(KindTable& table) {
  using model::Embedding;
  auto embedding = layer_record<Embedding>("embedding");
  embedding
      ->required("classes", option(&Embedding::classes), integer<std::int64_t>(1, kMostUnits),
                 Scope::kState, "Numbers that its input may have, from 0.")
      .required("units", option(&Embedding::units), integer<std::int64_t>(1, kMostUnits),
                Scope::kState, "Numbers in the row of a class.")
      .field("initialiser", option(&Embedding::initialiser), initialiser(), Scope::kState,
             "What they begin as.");
  add_kind(table, "embedding", embedding);

  using model::Attention;
  auto attention = layer_record<Attention>("attention");
  attention->short_form("heads").required(
      "heads", option(&Attention::heads), integer<std::int64_t>(1, kMostFilters), Scope::kState,
      "Parts of the channels, each with weights of its own. It reads queries, keys and values, a "
      "third of the channels each, of up to 4096 cells.");
  add_kind(table, "attention", attention);
}

CodecOf<model::Axis> axis() {
  return word<model::Axis>({{"x", model::Axis::kX},
                            {"y", model::Axis::kY},
                            {"z", model::Axis::kZ},
                            {"channels", model::Axis::kChannels}});
}

void add_spatial_kinds(KindTable& table) {
  auto pad = layer_record<model::Pad>("pad");
  pad->short_form("amount").required(
      "amount", option(&model::Pad::amount), margins(64), Scope::kState,
      "Zero cells added at both ends of each axis, or before and behind it.");
  add_kind(table, "pad", pad);

  auto crop = layer_record<model::Crop>("crop");
  crop->short_form("amount").required(
      "amount", option(&model::Crop::amount), margins(4096), Scope::kState,
      "Cells taken away at both ends of each axis, or before and behind it.");
  add_kind(table, "crop", crop);

  auto upsample = layer_record<model::Upsample>("upsample");
  upsample->short_form("factor").required("factor", option(&model::Upsample::factor),
                                          extent(1, 64, 1), Scope::kState,
                                          "How often each cell is repeated along each axis.");
  add_kind(table, "upsample", upsample);

  add_pool<model::AveragePool>(table, "average_pool", "Cells averaged per axis.");
  add_pool<model::MaxPool>(table, "max_pool", "Cells per axis of which the largest stays.");
  add_kind(table, "global_average_pool",
           layer_record<model::GlobalAveragePool>("global_average_pool"));
  add_kind(table, "global_max_pool", layer_record<model::GlobalMaxPool>("global_max_pool"));

  auto reshape = layer_record<model::Reshape>("reshape");
  reshape->short_form("to").required("to", option(&model::Reshape::to), shape(), Scope::kState,
                                     "The new shape, of as many elements.");
  add_kind(table, "reshape", reshape);
  add_kind(table, "flatten", layer_record<model::Flatten>("flatten"));

  auto permute = layer_record<model::Permute>("permute");
  permute->short_form("order").required("order", option(&model::Permute::order), list(axis(), 2, 4),
                                        Scope::kState,
                                        "For each axis of the output that of the input.");
  add_kind(table, "permute", permute);

  using model::Slice;
  auto slice = layer_record<Slice>("slice");
  slice->field("axis", option(&Slice::axis), axis(), Scope::kState, "Which axis is cut.")
      .field("begin", option(&Slice::begin), integer<std::int64_t>(0, kMostUnits), Scope::kState,
             "The first cell or channel that stays.")
      .required("count", option(&Slice::count), integer<std::int64_t>(1, kMostUnits), Scope::kState,
                "Cells or channels that stay.");
  add_kind(table, "slice", slice);
}

void add_joining_kinds(KindTable& table) {
  const auto layer_name = [] { return text("the name of a layer", kNamePattern); };
  const auto names = [&] { return list(layer_name(), 1, kMostOthers); };
  using model::Add;
  auto add = layer_record<Add>("add");
  add->short_form("with").required("with", option(&Add::with), names(), Scope::kState,
                                   "Layers of the same shape, or with a feature per channel, that "
                                   "are added to the one it reads.");
  add_kind(table, "add", add);

  using model::Multiply;
  auto multiply = layer_record<Multiply>("multiply");
  multiply->short_form("with").required("with", option(&Multiply::with), layer_name(),
                                        Scope::kState,
                                        "A layer of the same shape, or with a feature per channel, "
                                        "that multiplies the one it reads.");
  add_kind(table, "multiply", multiply);

  using model::Concatenate;
  auto concatenate = layer_record<Concatenate>("concatenate");
  concatenate->short_form("with")
      .required("with", option(&Concatenate::with), names(), Scope::kState,
                "Layers that follow the one it reads.")
      .field("axis", option(&Concatenate::axis), axis(), Scope::kState,
             "The axis along which they follow each other.");
  add_kind(table, "concatenate", concatenate);
}

void add_elementwise_kinds(KindTable& table) {
  using model::Activation;
  auto dropout = layer_record<model::Dropout>("dropout");
  dropout->short_form("rate").required("rate", option(&model::Dropout::rate), number(0.0, 0.99),
                                       Scope::kState,
                                       "Probability of a value becoming 0 in training.");
  add_kind(table, "dropout", dropout);

  auto activation = layer_record<Activation>("activation");
  activation->short_form("kind")
      .required("kind", option(&Activation::kind),
                word<ActivationKind>({{"linear", ActivationKind::kLinear},
                                      {"relu", ActivationKind::kRelu},
                                      {"leaky_relu", ActivationKind::kLeakyRelu},
                                      {"sigmoid", ActivationKind::kSigmoid},
                                      {"tanh", ActivationKind::kTanh},
                                      {"softplus", ActivationKind::kSoftplus},
                                      {"gelu", ActivationKind::kGelu},
                                      {"silu", ActivationKind::kSilu},
                                      {"elu", ActivationKind::kElu}}),
                Scope::kState, "The function; gelu in its form with tanh.")
      .field("slope", option(&Activation::slope), number(0.0, 1.0), Scope::kState,
             "Slope of leaky_relu below 0.")
      .used_if("kind: leaky_relu", [](const Described<Activation>& layer) {
        return layer.options.kind == ActivationKind::kLeakyRelu;
      });
  add_kind(table, "activation", activation);
  add_kind(table, "softmax", layer_record<model::Softmax>("softmax"));

  auto power = layer_record<model::Power>("power");
  power->short_form("exponent")
      .required("exponent", option(&model::Power::exponent), positive(), Scope::kState,
                "x^exponent; negative x counts as 0.");
  add_kind(table, "power", power);
}

void add_shower_kinds(KindTable& table) {
  add_kind(table, "sum", layer_record<model::Sum>("sum"));
  add_kind(table, "angle", layer_record<model::Angle>("angle"));
  add_kind(table, "bins", layer_record<model::Bins>("bins"));
}

KindTable make_kind_table() {
  KindTable table;
  add_dense_and_convolution(table);
  add_transposed_convolution(table);
  add_norms(table);
  add_embedding_and_attention(table);
  add_spatial_kinds(table);
  add_elementwise_kinds(table);
  add_joining_kinds(table);
  add_shower_kinds(table);
  return table;
}

}  // namespace

const KindTable& kind_table() {
  static const KindTable kTable = make_kind_table();
  return kTable;
}

const KindEntry& kind_entry(const model::LayerKind& kind) {
  const std::string word = model::kind_name(kind);
  const KindTable& table = kind_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const KindEntry& each) { return each.word == word; });
  CHECK(found != table.end(), "a kind of layer has no word");
  return *found;
}

std::vector<std::string> layer_kinds() {
  std::vector<std::string> words;
  for (const KindEntry& kind : kind_table()) words.push_back(kind.word);
  return words;
}

}  // namespace troupe::config
