"""The providers that Freehold knows by name: how each is reached, and where its key is issued."""

from dataclasses import dataclass

from freehold.errors import FreeholdError
from freehold.manifest.sections.models import BASE_URLS, SUBSCRIPTIONS, AuthKind, ProviderKind


@dataclass(frozen=True)
class KnownProvider:
    """`base_url` is None when the owner has to say it. `variables` are the names under which its key is usually exported.

    `is_local`: a program of the owner's own, at its usual port on loopback. It needs no key.
    """

    name: str
    title: str
    kind: ProviderKind
    base_url: str | None
    variables: tuple[str, ...] = ()
    key_page: str | None = None
    is_local: bool = False
    auth: AuthKind = "key"
    note: str = ""

    @property
    def agent(self) -> str | None:
        """The only agent that may use it; None when every agent may."""
        terms = SUBSCRIPTIONS.get(self.auth)
        return None if terms is None else terms.agent


KNOWN_PROVIDERS: tuple[KnownProvider, ...] = (
    KnownProvider(
        "anthropic",
        "Anthropic",
        "anthropic",
        BASE_URLS["anthropic"],
        ("ANTHROPIC_API_KEY",),
        "https://console.anthropic.com/settings/keys",
    ),
    KnownProvider(
        "openai",
        "OpenAI",
        "openai",
        BASE_URLS["openai"],
        ("OPENAI_API_KEY",),
        "https://platform.openai.com/api-keys",
    ),
    KnownProvider(
        "gemini",
        "Google Gemini",
        "gemini",
        BASE_URLS["gemini"],
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "https://aistudio.google.com/apikey",
    ),
    KnownProvider(
        "openrouter",
        "OpenRouter",
        "openai-compatible",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "https://openrouter.ai/settings/keys",
    ),
    KnownProvider(
        "mistral",
        "Mistral",
        "openai-compatible",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "https://console.mistral.ai/api-keys",
    ),
    KnownProvider(
        "groq",
        "Groq",
        "openai-compatible",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        "https://console.groq.com/keys",
    ),
    KnownProvider("xai", "xAI", "openai-compatible", "https://api.x.ai/v1", ("XAI_API_KEY",), "https://console.x.ai"),
    KnownProvider(
        "deepseek",
        "DeepSeek",
        "openai-compatible",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        "https://platform.deepseek.com/api_keys",
    ),
    KnownProvider(
        "claude-code",
        "Claude subscription",
        "anthropic",
        SUBSCRIPTIONS["claude-code"].base_url,
        auth="claude-code",
        # It is never offered by itself: the owner has to know what the terms of the plan say.
        note="Run claude setup-token on your own machine, and paste the token. Only the agent Claude Code uses it. "
        "Anthropic's terms for Free, Pro and Max do not permit these tokens in other products or in its Agent SDK, "
        "with which this agent is built: read the terms of your plan first, or use an API key.",
    ),
    KnownProvider(
        "codex",
        "ChatGPT subscription",
        "openai",
        SUBSCRIPTIONS["codex"].base_url,
        auth="codex",
        note="Run codex login on your own machine, and paste the content of ~/.codex/auth.json. Only the agent Codex uses it.",
    ),
    KnownProvider("ollama", "Ollama", "openai-compatible", "http://127.0.0.1:11434/v1", is_local=True),
    KnownProvider("lmstudio", "LM Studio", "openai-compatible", "http://127.0.0.1:1234/v1", is_local=True),
    KnownProvider("llamacpp", "llama.cpp", "openai-compatible", "http://127.0.0.1:8080/v1", is_local=True),
    KnownProvider("vllm", "vLLM", "openai-compatible", "http://127.0.0.1:8000/v1", is_local=True),
    KnownProvider(
        "custom",
        "Another server",
        "openai-compatible",
        None,
        note="Any server that speaks the API of OpenAI, by its base URL.",
    ),
)


def find_known_provider(name: str) -> KnownProvider:
    """Raises `models.not-found`."""
    for known in KNOWN_PROVIDERS:
        if known.name == name:
            return known
    raise FreeholdError(
        "models.not-found",
        f"There is no provider {name!a:.80}",
        hint=f"The providers are: {', '.join(known.name for known in KNOWN_PROVIDERS)}",
    )
