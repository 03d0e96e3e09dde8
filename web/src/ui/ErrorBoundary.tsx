import { Component, type ReactNode } from "react";
import { Notice } from "./Notice";

interface ErrorBoundaryProps {
  /** The part of the page that it surrounds, as the start of a sentence. */
  name: string;
  /** What is drawn instead of a part that throws. Without it, a notice. */
  fallback?: ReactNode;
  /** What the part is about. When it changes, the part is tried again. */
  content?: unknown;
  children: ReactNode;
}

interface ErrorBoundaryState {
  message: string | null;
  content: unknown;
}

/** Shows a notice in place of a part of the page that throws. Everything outside of it keeps working. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { message: null, content: this.props.content };

  static getDerivedStateFromError(error: unknown): Partial<ErrorBoundaryState> {
    return { message: error instanceof Error ? error.message : String(error) };
  }

  static getDerivedStateFromProps(props: ErrorBoundaryProps, state: ErrorBoundaryState): ErrorBoundaryState | null {
    return props.content === state.content ? null : { message: null, content: props.content };
  }

  override render(): ReactNode {
    const { message } = this.state;
    const { name, fallback, children } = this.props;
    if (message === null) return children;
    if (fallback !== undefined) return fallback;
    return (
      <div className="column">
        <Notice
          problem={{
            code: "page.error",
            message: `${name} has an error: ${message}`,
            hint: "Reload the page. If it happens again, please report it. The other pages still work.",
          }}
          action={{ label: "Reload the page", run: () => location.reload() }}
        />
      </div>
    );
  }
}
