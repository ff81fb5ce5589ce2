// What the numbers mean, in plain sentences.

import { bare, listed, plain } from "./format.js";

/**
 * Advice in one sentence.
 * @param {{feature: string, from: unknown, to: unknown, unit?: string}[]} changes
 */
export function adviceSentence(changes) {
  const parts = changes.map(({ feature, from, to, unit }) => {
    const name = plain(feature);
    if (typeof from === "number" && typeof to === "number") {
      const verb = to > from ? "raise" : "lower";
      return `${verb} ${name} from ${bare(from)} to ${bare(to)}${unit ? ` ${unit}` : ""}`;
    }
    return `change ${name} from “${bare(from)}” to “${bare(to)}”`;
  });
  const sentence = listed(parts);
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
}

/** How many retrained models accept. */
export function survivalSentence(survives, models) {
  if (models === 0) return "There are no retrained models to ask.";
  if (survives === models) return `All ${models} retrained models would accept.`;
  if (survives === 0) return `None of ${models} retrained models would accept.`;
  return `${survives} of ${models} retrained models would accept.`;
}

/** What the stability of advice says. */
export function stabilitySentence(stability) {
  if (stability >= 0.75) return "applicants very like this are accepted too, with nearly the same score";
  if (stability >= 0.5) return "applicants very like this are mostly accepted, some with a lower score";
  return "small differences already pull the score down: a retrained model may well say no";
}

/** What the cost counts. */
export const COST =
  "how far it is on the model's own scale; another category counts 2";

const VERDICTS = {
  certified: "shown, given what it rests on",
  empirical: "seen, but something it rests on is an estimate",
  vacuous: "no promise",
};

/** What a verdict means. */
export const verdictMeaning = (verdict) => VERDICTS[verdict] ?? verdict;

const TIERS = {
  ensemble: "Retrained models",
  theorem: "The paper's theorem",
  interval: "Small changes of weights",
};

const STANDINGS = {
  proved: "it follows from the model's weights",
  declared: "whoever runs this says so",
  measured: "it was measured, and the chance of error is counted in",
  estimated: "nothing bounds the error",
  "not known": "nobody has looked",
  "not so": "it is known not to hold",
};

/**
 * The parts of a certificate: what its tiers claim, the strongest first, and what those that
 * promise something rest on, each thing once.
 * @param {{verdict: string, claims: {tier: string, verdict: string, sentence: string, rests_on: string[]}[], omitted: {tier: string, reason: string}[]}} certificate
 */
export function certificateWords({ verdict, claims, omitted }) {
  const strength = Object.keys(VERDICTS);
  const tiers = Object.keys(TIERS);
  const rank = (claim) => 10 * strength.indexOf(claim.verdict) + tiers.indexOf(claim.tier);
  const sorted = claims.toSorted((a, b) => rank(a) - rank(b));
  const promising = sorted.filter((claim) => claim.verdict !== "vacuous");
  const assumptions = new Set(promising.flatMap((claim) => claim.rests_on));
  return {
    verdict,
    claims: sorted.map((claim) => ({
      ...claim,
      title: TIERS[claim.tier] ?? claim.tier,
      // The verdict stands beside it.
      sentence: claim.sentence.replace(` (${claim.verdict})`, ""),
    })),
    assumptions: [...assumptions].map(assumption),
    omitted: omitted.map(({ tier, reason }) => ({ title: TIERS[tier] ?? tier, reason })),
  };
}

/** "the next model comes about like ... (declared)", taken apart. */
function assumption(text) {
  const [, sentence, standing] = /^(.*) \(([^()]+)\)$/s.exec(text) ?? [null, text, ""];
  return { sentence, standing, meaning: STANDINGS[standing] };
}
